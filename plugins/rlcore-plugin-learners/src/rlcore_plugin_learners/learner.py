"""The life of a learner: built, updated, its modules coming and going, its state taken, set and saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import torch
from torch import Tensor, nn

from rlcore.errors import ConfigError, NotBuiltError, did_you_mean
from rlcore.learners import in_training, trained_layers
from rlcore.types import Alone, Group
from rlcore_plugin_learners.batches import ModuleBatch, MultiBatch, training_data
from rlcore_plugin_learners.checkpointable import Checkpointable
from rlcore_plugin_learners.columns import (
    ALL_MODULES,
    COMPONENT_METRICS_LOGGER,
    COMPONENT_OPTIMIZER,
    COMPONENT_RL_MODULE,
)
from rlcore_plugin_learners.metrics import MetricsLogger
from rlcore_plugin_learners.module import RLModule, RLModuleSpec
from rlcore_plugin_learners.multi import MultiRLModule, MultiRLModuleSpec, seed_of
from rlcore_plugin_learners.states import Paths, chosen

if TYPE_CHECKING:
    from rlcore_plugin_learners.config import AlgorithmConfig

_CLOCKS: Final = "timesteps"
_EXTRA: Final = "extra"
_GENERATOR: Final = "generator"
_UPDATES: Final = "weights_seq_no"


class Learner(Checkpointable, ABC):
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
            module = (self._module_spec or self.config.module_spec()).build(self.config.seed)
        self._module = module.to(self._device)
        for module_id in module.keys():  # noqa: SIM118 - modules are iterated over by what says so
            self._begin_training(module_id)

    def _begin_training(self, module_id: str) -> None:
        self._layers[module_id] = trained_layers(self.module[module_id])
        self.configure_optimizers_for_module(module_id, self.config.get_config_for_module(module_id))

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
    def distributed(self) -> bool:
        """Whether other processes train the same modules."""
        return self.group.size > 1

    def update(
        self,
        batch: Any = None,
        batches: Any = None,
        episodes: Any = None,
        *,
        timesteps: Mapping[str, int] | None = None,
        num_total_minibatches: int = 0,
        num_epochs: int | None = None,
        minibatch_size: int | None = None,
        shuffle_batch_per_epoch: bool | None = None,
    ) -> dict[str, Any]:
        """Train, and return what was logged, by module.

        Args:
            batch: columns `[row, ...]` by name, or such mappings by the id of their module.
            batches: several of those.
            episodes: columns `[step, ...]` of each episode, in a sequence, or such sequences by id.
            timesteps: clocks such as `num_env_steps_sampled_lifetime`, for schedules.
            num_total_minibatches: end after so many; 0 for no such end.
            num_epochs: how often to go through the rows; default: what the config says, as for the next two.
            minibatch_size: rows of a minibatch, for each module; all rows where the config says nothing either.
            shuffle_batch_per_epoch: whether every epoch has another order, where there are several.

        Raises:
            ConfigError: none or several forms of data, no rows, an unknown module; a `ValueError`.
            UnwrittenEntryError: a loss reads a column that is not there; a `KeyError`.
            NumericalError: a step was not finite; it changed nothing.
        """
        data = training_data(batch, batches, episodes, self._device, self.module.keys())
        return self.update_on(
            data, timesteps or {}, num_total_minibatches, num_epochs, minibatch_size, shuffle_batch_per_epoch
        )

    def update_on(
        self,
        data: MultiBatch,
        timesteps: Mapping[str, int],
        num_total_minibatches: int = 0,
        num_epochs: int | None = None,
        minibatch_size: int | None = None,
        shuffle_batch_per_epoch: bool | None = None,
    ) -> dict[str, Any]:
        """Do what `update` does with columns that are tensors; a process of a group may have none at all."""
        config = self.config
        num_epochs = config.num_epochs if num_epochs is None else num_epochs
        minibatch_size = config.minibatch_size if minibatch_size is None else minibatch_size
        if shuffle_batch_per_epoch is None:
            shuffle_batch_per_epoch = config.shuffle_batch_per_epoch
        for name, value in (("num_epochs", num_epochs), ("minibatch_size", minibatch_size)):
            if value is not None and (type(value) is not int or value < 1):
                raise ConfigError(f"{name} is {value!r}; it takes whole numbers from 1 on")
        self._check_ids(data)
        data = {module_id: columns for module_id, columns in data.items() if self._is_trained(module_id, data)}
        self.timesteps |= timesteps
        try:
            self.before_gradient_based_update(timesteps=self.timesteps)
            shuffler = self._shuffler() if shuffle_batch_per_epoch and num_epochs > 1 else None
            with in_training([layer for own in self._layers.values() for layer in own]):
                self._train(data, minibatch_size, num_epochs, num_total_minibatches, shuffler)
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
        """Return the loss of each module, 0-d, from what the modules returned for a minibatch."""
        return {
            module_id: self.compute_loss_for_module(
                module_id=module_id,
                config=self.config.get_config_for_module(module_id),
                batch=batch[module_id],
                fwd_out=returned,
            )
            for module_id, returned in fwd_out.items()
        }

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
    ) -> None:
        """Add a module, with optimizers of its own."""
        if config_overrides:
            self.config.copy().training(**config_overrides)  # refused before anything is changed
        self.module.add_module(module_id, module_spec.build(seed_of(self.config.seed, module_id)).to(self._device))
        if config_overrides:
            self.config.algorithm_config_overrides_per_module[module_id] = config_overrides
        if new_should_module_be_updated is not None:
            self.config.policies_to_train = new_should_module_be_updated
        self._begin_training(module_id)

    def remove_module(
        self, module_id: str, *, new_should_module_be_updated: Collection[str] | Callable[..., bool] | None = None
    ) -> None:
        """Take a module out, and its optimizers with it.

        Raises:
            ConfigError: there is none of that id.
        """
        self.module.remove_module(module_id)
        self.metrics.delete(module_id)
        self._layers.pop(module_id, None)
        self.config.algorithm_config_overrides_per_module.pop(module_id, None)
        if new_should_module_be_updated is not None:
            self.config.policies_to_train = new_should_module_be_updated

    def get_state(
        self, components: Paths = None, *, not_components: Paths = None, inference_only: bool = False
    ) -> dict[str, Any]:
        """Return copies of the state, its tensors as arrays of NumPy.

        Args:
            components: paths of what to return, such as `rl_module/p0`; default: everything.
            not_components: paths of what to leave out.
            inference_only: whether to leave out the weights that acting does not need.
        """
        parts = self._parts()
        if inference_only:
            parts[COMPONENT_RL_MODULE] = partial(self.module.get_state, inference_only=True)
        return chosen(parts, components, not_components)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Set what a state has, whatever is older or newer; the rest stays as it is.

        Raises:
            ConfigError: it has a part, a module or an optimizer that is not here.
        """
        setters = self._setters()
        for name in state:
            if name not in setters:
                raise ConfigError(f"the state of a learner has no part {name!r}{did_you_mean(name, setters)}")
        for name, value in state.items():
            setters[name](value)

    def get_extra_state(self) -> dict[str, Any]:
        """Return what a subclass has to save besides."""
        return {}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Set what `get_extra_state` returned."""

    @classmethod
    def from_checkpoint(cls, path: str | Path, *args: Any, **kwargs: Any) -> Self:
        """Return a built learner with the state of a folder.

        Args:
            path: of `save_to_path`.
            args: those of the constructor, which no file keeps.
            kwargs: likewise.
        """
        learner = cls(*args, **kwargs)
        learner.build()
        learner.restore_from_path(path)
        return learner

    @abstractmethod
    def _optimizer_state(self) -> dict[str, Any]:
        """Return the state of each optimizer."""

    @abstractmethod
    def _set_optimizer_state(self, state: Mapping[str, Any]) -> None:
        """Set the state of some optimizers."""

    def _parts(self) -> dict[str, Callable[[], Any]]:
        return {
            COMPONENT_RL_MODULE: self.module.get_state,
            COMPONENT_OPTIMIZER: self._optimizer_state,
            COMPONENT_METRICS_LOGGER: self.metrics.get_state,
            _CLOCKS: lambda: dict(self.timesteps),
            _UPDATES: lambda: self.weights_seq_no,
            _GENERATOR: lambda: self.generator.get_state().numpy().copy(),
            _EXTRA: self.get_extra_state,
        }

    def _setters(self) -> dict[str, Callable[[Any], None]]:
        return {
            COMPONENT_RL_MODULE: self.module.set_state,
            COMPONENT_OPTIMIZER: self._set_optimizer_state,
            COMPONENT_METRICS_LOGGER: self.metrics.set_state,
            _CLOCKS: lambda value: setattr(self, "timesteps", dict(value)),
            _UPDATES: lambda value: setattr(self, "weights_seq_no", int(value)),
            _GENERATOR: self._set_generator,
            _EXTRA: self.set_extra_state,
        }

    def _set_generator(self, value: Any) -> None:
        self.generator.set_state(torch.as_tensor(np.array(value)))

    def _check_ids(self, data: MultiBatch) -> None:
        for module_id in data:
            if module_id not in self.module:
                there = self.module.keys()
                raise ConfigError(
                    f"the batch is for a module {module_id!r}, which is not here{did_you_mean(module_id, there)}; "
                    f"there are {', '.join(there) or 'none'}"
                )

    def _is_trained(self, module_id: str, data: MultiBatch) -> bool:
        return module_id != ALL_MODULES and self.should_module_be_updated(module_id, data)

    def _shuffler(self) -> torch.Generator:
        """Return a generator for the rows of one update, which are others in each process."""
        return torch.Generator().manual_seed(seed_of(self.config.seed, f"rows/{self.weights_seq_no}/{self.group.rank}"))
