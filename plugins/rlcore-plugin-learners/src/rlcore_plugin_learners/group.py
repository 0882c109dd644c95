"""A group of learners behind one: updates, state and weights of all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from rlcore.errors import ConfigError, NotSupportedError
from rlcore_plugin_learners.columns import COMPONENT_LEARNER, COMPONENT_RL_MODULE
from rlcore_plugin_learners.config import AlgorithmConfig
from rlcore_plugin_learners.learner import Learner
from rlcore_plugin_learners.module import RLModuleSpec
from rlcore_plugin_learners.multi import MultiRLModuleSpec
from rlcore_plugin_learners.states import Paths, write_state

Result = TypeVar("Result")

_WEIGHTS_AFTER = "_rl_module_state_after_update"


class LearnerGroup:
    """Learners of the same modules.

    Args:
        config: its settings; with `num_learners=0` the learner is in this process.
        module_spec: which modules to build; default: those of the config.
    """

    def __init__(
        self,
        config: AlgorithmConfig,
        module_spec: MultiRLModuleSpec | RLModuleSpec | None = None,
    ) -> None:
        if config.num_learners:
            raise NotSupportedError(
                f"num_learners is {config.num_learners}; learners in processes of their own are not here yet: use 0"
            )
        self.config = config
        self._learner: Learner | None = config.learner_type()(config, module_spec or config.module_spec())
        self._learner.build()

    def update(
        self,
        batch: Any = None,
        batches: Any = None,
        episodes: Any = None,
        *,
        timesteps: Mapping[str, int] | None = None,
        async_update: bool = False,
        return_state: bool = False,
        num_total_minibatches: int = 0,
        num_epochs: int | None = None,
        minibatch_size: int | None = None,
        shuffle_batch_per_epoch: bool | None = None,
    ) -> list[dict[str, Any]]:
        """Train, and return what each learner logged.

        Args:
            batch: see `Learner.update`, as for what is not explained here.
            batches: see there.
            episodes: see there.
            timesteps: see there.
            async_update: return at once with the results of earlier updates; only with learners in other processes.
            return_state: whether the first result has the weights, under `_rl_module_state_after_update`.
            num_total_minibatches: see there.
            num_epochs: see there.
            minibatch_size: see there.
            shuffle_batch_per_epoch: see there.

        Raises:
            ConfigError: see there; or asynchronous without other processes, or the group was shut down.
        """
        if async_update:
            raise ConfigError("async_update=True takes learners in other processes: num_learners of 1 or more")
        learner = self._here()
        result = learner.update(
            batch,
            batches,
            episodes,
            timesteps=timesteps,
            num_total_minibatches=num_total_minibatches,
            num_epochs=num_epochs,
            minibatch_size=minibatch_size,
            shuffle_batch_per_epoch=shuffle_batch_per_epoch,
        )
        if return_state:
            result[_WEIGHTS_AFTER] = learner.get_state(COMPONENT_RL_MODULE)[COMPONENT_RL_MODULE]
        return [result]

    def add_module(
        self,
        *,
        module_id: str,
        module_spec: RLModuleSpec,
        config_overrides: dict[str, Any] | None = None,
        new_should_module_be_updated: Collection[str] | Callable[..., bool] | None = None,
    ) -> None:
        """Add a module to every learner; see `Learner.add_module`."""
        self._here().add_module(
            module_id=module_id,
            module_spec=module_spec,
            config_overrides=config_overrides,
            new_should_module_be_updated=new_should_module_be_updated,
        )

    def remove_module(
        self, module_id: str, *, new_should_module_be_updated: Collection[str] | Callable[..., bool] | None = None
    ) -> None:
        """Take a module out of every learner."""
        self._here().remove_module(module_id, new_should_module_be_updated=new_should_module_be_updated)

    def get_state(self, components: Paths = None, *, not_components: Paths = None) -> dict[str, Any]:
        """Return the state of the learners, which is the same in all of them, under `learner`.

        Args:
            components: paths in it, such as `rl_module/p0`.
            not_components: paths of what to leave out.
        """
        return {COMPONENT_LEARNER: self._here().get_state(components, not_components=not_components)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Set what a state of `get_state` has, in every learner."""
        if set(state) != {COMPONENT_LEARNER}:
            raise ConfigError(f"the state of a group has the one part {COMPONENT_LEARNER!r}, not {', '.join(state)}")
        self._here().set_state(state[COMPONENT_LEARNER])

    def get_weights(self, module_ids: Collection[str] | None = None) -> dict[str, Any]:
        """Return the weights of modules, by id; of all by default."""
        paths = COMPONENT_RL_MODULE if module_ids is None else _weights_of(module_ids)
        weights: dict[str, Any] = self._here().get_state(paths)[COMPONENT_RL_MODULE]
        return weights

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Set the weights of some modules, by id."""
        self._here().set_state({COMPONENT_RL_MODULE: weights})

    def save_to_path(self, path: str | Path) -> str:
        """Write the state into a folder; see `Learner.save_to_path`, whose folders this one reads and writes too."""
        write_state(Path(path), self.get_state()[COMPONENT_LEARNER])
        return str(path)

    def restore_from_path(self, path: str | Path, *, component: str | None = None) -> None:
        """Set the state of every learner from a folder; see `Learner.restore_from_path`."""
        self._here().restore_from_path(path, component=component)

    def foreach_learner(self, func: Callable[[Learner], Result]) -> list[Result]:
        """Return what a function of a learner returns for each of them."""
        return [func(self._here())]

    def get_stats(self) -> dict[str, Any]:
        """Return counts of the group itself."""
        return {"num_learners": 0}

    def __len__(self) -> int:
        """Return how many other processes learn."""
        return 0

    @property
    def is_local(self) -> bool:
        """Whether the learner is in this process."""
        return not self.config.num_learners

    @property
    def is_remote(self) -> bool:
        """Whether learners are in other processes."""
        return not self.is_local

    def shutdown(self) -> None:
        """End the learners; may be called again."""
        self._learner = None

    def _here(self) -> Learner:
        if self._learner is None:
            raise ConfigError("the group of learners was shut down; build another")
        return self._learner


def _weights_of(module_ids: Iterable[str]) -> list[str]:
    return [f"{COMPONENT_RL_MODULE}/{module_id}" for module_id in module_ids]
