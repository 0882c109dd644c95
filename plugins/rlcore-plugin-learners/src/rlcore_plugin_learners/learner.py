"""The life of a learner: built, updated, its modules coming and going, its state taken, set and saved."""

from __future__ import annotations

import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

import torch
from torch import Tensor, nn

from rlcore.errors import ConfigError, NoSuchAttributeError, NotBuiltError
from rlcore.learners import in_training, trained_layers
from rlcore.types import Alone, Carries, Group
from rlcore_plugin_learners.batches import ModuleBatch, MultiBatch, TrainingData, check_ids
from rlcore_plugin_learners.columns import ALL_MODULES
from rlcore_plugin_learners.episode_columns import EpisodeColumns
from rlcore_plugin_learners.learner_state import LearnerState
from rlcore_plugin_learners.metrics import MetricsLogger
from rlcore_plugin_learners.module import RLModule, RLModuleSpec
from rlcore_plugin_learners.multi import MultiRLModule, MultiRLModuleSpec, seed_of
from rlcore_plugin_learners.old_names import OldNames
from rlcore_plugin_learners.originals import LEARNER

if TYPE_CHECKING:
    from rlcore_plugin_learners.config import AlgorithmConfig

Result = TypeVar("Result")


class Learner(Carries, LearnerState, OldNames, ABC):
    """Trains modules on batches that are handed to it.

    Args:
        config: its settings.
        module_spec: which modules to build; default: those of the config.
        module: modules that are built already, in the place of a spec.
        group: the processes that train together, each with a learner of the same modules.

    Attributes:
        config: as given.
        group: as given.
        metrics: logs values under keys; the results of an update are made of them.
        generator: for whoever draws noise, on the CPU; saved, and the same in all processes of a group.
        timesteps: the clocks that the last updates were given.
        weights_seq_no: updates so far.
    """

    original = LEARNER
    framework: str = "torch"
    TOTAL_LOSS_KEY: str = "total_loss"
    _of_episodes: ClassVar[EpisodeColumns] = EpisodeColumns()

    def __init__(
        self,
        config: AlgorithmConfig,
        module_spec: MultiRLModuleSpec | RLModuleSpec | None = None,
        module: MultiRLModule | RLModule | None = None,
        *,
        group: Group | None = None,
    ) -> None:
        self.config = config
        self.group: Group = group or Alone()
        self.metrics = MetricsLogger()
        self.generator = torch.Generator().manual_seed(seed_of(config.seed, "noise"))
        self.timesteps: dict[str, int] = {}
        self.weights_seq_no = 0
        self._env_steps = 0  # of the batch
        self._module_spec = None if module_spec is None else module_spec.as_multi_rl_module_spec()
        self._given = None if module is None else module.as_multi_rl_module()
        self._module: MultiRLModule | None = None
        self._layers: dict[str, tuple[nn.Module, ...]] = {}  # of each module, that losses put into training mode
        self._device = torch.device("cuda" if config.num_gpus_per_learner else "cpu")

    def build(self) -> None:
        """Build modules and optimizers; before it nothing else can be called, and again it changes nothing."""
        if self._module is not None:
            return
        module = self._given
        if module is None:
            module = (self._module_spec or self.config.get_multi_rl_module_spec()).build(self.config.seed)
        self._module = module.to(self._device)
        self._layers = {module_id: trained_layers(module[module_id]) for module_id in module}
        for module_id in module:
            self._begin_module(module_id)
        self.configure_optimizers()

    def _begin_module(self, module_id: str) -> None:
        """Keep what a learner has for each module, before its optimizers are registered: nothing."""

    def configure_optimizers(self) -> None:
        """Register the optimizers of every module that this learner can train."""
        for module_id in list(self.module):
            self._configure_optimizers_for(module_id)

    def _configure_optimizers_for(self, module_id: str) -> None:
        if self.rl_module_is_compatible(self.module[module_id]):
            config = self.config.get_config_for_module(module_id)
            self.configure_optimizers_for_module(module_id=module_id, config=config)

    def rl_module_is_compatible(self, module: RLModule) -> bool:
        """Return whether a module is of all classes that this learner asks for."""
        return all(isinstance(module, kind) for kind in self.rl_module_required_apis())

    @classmethod
    def rl_module_required_apis(cls) -> list[type]:
        """Return classes that a module has to be of; by default none."""
        return []

    @property
    def module(self) -> MultiRLModule:
        """The modules, by id.

        Raises:
            NotBuiltError: `build` was not called; a `ValueError`.
        """
        if self._module is None:
            raise NotBuiltError(f"{type(self).__name__} is not built: call build() first")
        return self._module

    @property
    def device(self) -> torch.device:
        """Where modules and batches are."""
        return self._device

    @property
    def _learner_connector(self) -> NoReturn:
        """The connectors of RLlib's learners.

        Raises:
            NoSuchAttributeError: always; batches have their columns when they come.
        """
        raise NoSuchAttributeError(
            "a learner has no connectors here: compute what they would add, such as advantages, before update"
        )

    @property
    def node(self) -> str:
        """The name of the machine."""
        return platform.node()

    @property
    def distributed(self) -> bool:
        """Whether other processes train the same modules."""
        return self.group.size > 1

    def shutdown(self) -> None:
        """Give back what a subclass holds: nothing, unless it does."""

    def apply(self, func: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
        """Return what a function of this learner returns; a group asks its learners so."""
        return func(self, *args, **kwargs)

    def update(
        self,
        batch: Any = None,
        batches: Any = None,
        batch_refs: Any = None,
        episodes: Any = None,
        episodes_refs: Any = None,
        data_iterators: Any = None,
        training_data: TrainingData | None = None,
        *,
        timesteps: Mapping[str, int] | None = None,
        num_total_minibatches: int = 0,
        num_epochs: int | None = None,
        minibatch_size: int | None = None,
        shuffle_batch_per_epoch: bool | None = None,
        num_iters: int | None = None,
    ) -> dict[str, Any]:
        """Train, and return what was logged, by module.

        Args:
            batch: columns `[row, ...]` by name, or such mappings by the id of their module.
            batches: several of those.
            batch_refs: references to those in Ray's store.
            episodes: a sequence of `SingleAgentEpisode`, or of columns `[step, ...]` of each; see `TrainingData`.
            episodes_refs: references to those in Ray's store.
            data_iterators: iterables of batches, of each of which `num_iters` are taken.
            training_data: one of these in an object.
            timesteps: clocks such as `num_env_steps_sampled_lifetime`, for schedules.
            num_total_minibatches: end after so many; 0 for no such end.
            num_epochs: how often to go through the rows; default: what the config says, as for the next two.
            minibatch_size: rows of a minibatch, for each module; all rows where the config says nothing either.
            shuffle_batch_per_epoch: whether every epoch has another order, where there are several.
            num_iters: batches of each iterator.

        Raises:
            ConfigError: none or several forms of data, no rows, an unknown module; a `ValueError`.
            UnwrittenEntryError: a loss reads a column that is not there; a `KeyError`.
            NumericalError: a step was not finite; it changed nothing.
        """
        given = training_data or TrainingData(batch, batches, batch_refs, episodes, episodes_refs, data_iterators)
        began = time.perf_counter()
        data = self._completed(given.by_module(self._device, self.module.keys(), num_iters, self._of_episodes))
        if given.whole_episodes():
            key = (ALL_MODULES, "learner_connector", "connector_pipeline_timer")
            self.metrics.log_value(key, time.perf_counter() - began)
        self._env_steps = given.env_steps()
        settings = self._settings(num_epochs, minibatch_size, shuffle_batch_per_epoch)
        return self._update_on(data, timesteps or {}, num_total_minibatches, *settings)

    def _completed(self, data: MultiBatch) -> MultiBatch:
        """Return what is trained on: columns with those that follow from others, such as advantages."""
        return data

    def _settings(self, epochs: int | None, size: int | None, shuffles: bool | None) -> tuple[int, int | None, bool]:
        """Return what an update was told, or else what the config says."""
        config = self.config
        epochs = config.num_epochs if epochs is None else epochs
        size = config.minibatch_size if size is None else size
        for name, value in (("num_epochs", epochs), ("minibatch_size", size)):
            if value is not None and (type(value) is not int or value < 1):
                raise ConfigError(f"{name} is {value!r}; it takes whole numbers from 1 on")
        return epochs, size, config.shuffle_batch_per_epoch if shuffles is None else shuffles

    def _update_on(
        self, data: MultiBatch, timesteps: Mapping[str, int], most: int, epochs: int, size: int | None, shuffles: bool
    ) -> dict[str, Any]:
        check_ids(data, self.module)
        data = {module_id: columns for module_id, columns in data.items() if self._is_trained(module_id, data)}
        self.timesteps |= timesteps
        try:
            self.before_gradient_based_update(timesteps=self.timesteps)
            shuffler = self._shuffler() if shuffles and epochs > 1 else None
            with in_training([layer for own in self._layers.values() for layer in own]):
                self._train(data, size, epochs, most, shuffler)
            self.after_gradient_based_update(timesteps=self.timesteps)
        except BaseException:
            self.metrics.drop()
            raise
        self.weights_seq_no += 1
        return self.metrics.reduce()

    @abstractmethod
    def _train(
        self,
        data: MultiBatch,
        size: int | None,
        epochs: int,
        most: int,
        shuffler: torch.Generator | None,
    ) -> None:
        """Take the steps of an update."""

    def before_gradient_based_update(self, *, timesteps: dict[str, int]) -> None:
        """Do what changes modules without gradients, before them: nothing, unless a subclass does."""

    def after_gradient_based_update(self, *, timesteps: dict[str, int]) -> None:
        """Do what changes modules without gradients, after them: nothing, unless a subclass does."""

    @abstractmethod
    def configure_optimizers_for_module(self, module_id: str, config: AlgorithmConfig) -> None:
        """Register the optimizers of a module."""

    def compute_losses(
        self, *, fwd_out: Mapping[str, Mapping[str, Tensor]], batch: Mapping[str, ModuleBatch]
    ) -> dict[str, Tensor]:
        """Return the loss of each module, 0-d, from what it returned for a minibatch; a module may compute its own."""
        losses = {}
        for module_id, returned in fwd_out.items():
            given = {"config": self.config.get_config_for_module(module_id), "batch": batch[module_id]}
            own = getattr(self.module[module_id], "compute_self_supervised_loss", None)
            compute = self.compute_loss_for_module if own is None else partial(own, learner=self)
            losses[module_id] = compute(module_id=module_id, fwd_out=returned, **given)
        return losses

    @abstractmethod
    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: Any, fwd_out: Mapping[str, Tensor]
    ) -> Tensor:
        """Return the loss of a module, 0-d: a mean over the rows of the minibatch.

        Args:
            module_id: which module.
            config: its settings.
            batch: its columns.
            fwd_out: what its `forward_train` returned.
        """

    def should_module_be_updated(self, module_id: str, multi_agent_batch: Any = None) -> bool:
        """Return whether a module is trained, as the config says."""
        trained = self.config.policies_to_train
        if trained is None:
            return True
        return bool(trained(module_id, multi_agent_batch)) if callable(trained) else module_id in trained

    def add_module(
        self,
        *,
        module_id: str,
        module_spec: RLModuleSpec,
        config_overrides: dict[str, Any] | None = None,
        new_should_module_be_updated: Collection[str] | Callable[..., bool] | None = None,
    ) -> MultiRLModuleSpec:
        """Add a module, with optimizers of its own, and return how to build what there is."""
        if config_overrides:
            self.config.copy().training(**config_overrides)  # refused before anything is changed
        self.module.add_module(module_id, module_spec.build(seed_of(self.config.seed, module_id)).to(self._device))
        if config_overrides:
            self.config.algorithm_config_overrides_per_module[module_id] = config_overrides
        if new_should_module_be_updated is not None:
            self.config.policies_to_train = new_should_module_be_updated
        self._layers[module_id] = trained_layers(self.module[module_id])
        self._begin_module(module_id)
        self._configure_optimizers_for(module_id)
        return MultiRLModuleSpec.from_module(self.module)

    def remove_module(
        self, module_id: str, *, new_should_module_be_updated: Collection[str] | Callable[..., bool] | None = None
    ) -> MultiRLModuleSpec:
        """Take a module out, and its optimizers with it, and return how to build what is left.

        Raises:
            ConfigError: there is none of that id.
        """
        self.module.remove_module(module_id)
        self.metrics.delete(module_id)
        self._layers.pop(module_id, None)
        self.config.algorithm_config_overrides_per_module.pop(module_id, None)
        if new_should_module_be_updated is not None:
            self.config.policies_to_train = new_should_module_be_updated
        return MultiRLModuleSpec.from_module(self.module)

    def _is_trained(self, module_id: str, data: MultiBatch) -> bool:
        return module_id != ALL_MODULES and self.should_module_be_updated(module_id, data)

    def _shuffler(self) -> torch.Generator:
        """Return a generator for the rows of one update, which are others in each process."""
        return torch.Generator().manual_seed(seed_of(self.config.seed, f"rows/{self.weights_seq_no}/{self.group.rank}"))
