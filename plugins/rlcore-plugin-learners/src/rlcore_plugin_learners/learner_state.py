"""The state of a learner: its parts, taken, set, and kept in a folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from rlcore.errors import ConfigError, did_you_mean
from rlcore_plugin_learners.checkpointable import Checkpointable
from rlcore_plugin_learners.columns import (
    COMPONENT_LEARNER,
    COMPONENT_METRICS_LOGGER,
    COMPONENT_OPTIMIZER,
    COMPONENT_RL_MODULE,
)
from rlcore_plugin_learners.metrics import MetricsLogger
from rlcore_plugin_learners.multi import MultiRLModule, MultiRLModuleSpec
from rlcore_plugin_learners.states import Paths, chosen

if TYPE_CHECKING:
    from rlcore_plugin_learners.config import AlgorithmConfig

_CLOCKS: Final = "timesteps"
_EXTRA: Final = "extra"
_GENERATOR: Final = "generator"
_UPDATES: Final = "weights_seq_no"


class LearnerState(Checkpointable, ABC):
    """Takes and sets the state of a learner, of parts that may be chosen by their paths."""

    config: AlgorithmConfig
    generator: torch.Generator
    metrics: MetricsLogger
    timesteps: dict[str, int]
    weights_seq_no: int
    _module: MultiRLModule | None
    _module_spec: MultiRLModuleSpec | None

    @property
    @abstractmethod
    def module(self) -> MultiRLModule:
        """The modules, by id."""

    @abstractmethod
    def build(self) -> None:
        """Build modules and optimizers."""

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

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what the constructor takes for another one like this: positional arguments, and those by name."""
        spec = self._module_spec if self._module is None else MultiRLModuleSpec.from_module(self._module)
        return (), {"config": self.config, "module_spec": spec}

    def get_checkpointable_components(self) -> list[tuple[str, Checkpointable]]:
        """Return the modules, built before if need be."""
        self.build()
        return [(COMPONENT_RL_MODULE, self.module)]

    @classmethod
    def _chosen(cls, constructors: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return those of a learner; the folder of a group is that of its learner."""
        return constructors.get("components", {}).get(COMPONENT_LEARNER, constructors)  # type: ignore[no-any-return]

    def restore_from_path(self, path: str | Path, *, component: str | None = None) -> None:
        """Set the state from a folder, built before if need be; see `Checkpointable.restore_from_path`."""
        self.build()
        super().restore_from_path(path, component=component)

    @abstractmethod
    def _get_optimizer_state(self) -> dict[str, Any]:
        """Return the state of each optimizer."""

    @abstractmethod
    def _set_optimizer_state(self, state: Mapping[str, Any]) -> None:
        """Set the state of some optimizers."""

    def _parts(self) -> dict[str, Callable[[], Any]]:
        return {
            COMPONENT_RL_MODULE: self.module.get_state,
            COMPONENT_OPTIMIZER: self._get_optimizer_state,
            COMPONENT_METRICS_LOGGER: self.metrics.get_state,
            _CLOCKS: lambda: dict(self.timesteps),
            _UPDATES: lambda: self.weights_seq_no,
            _GENERATOR: lambda: self.generator.get_state().numpy().copy(),
            _EXTRA: self.get_extra_state,
        }

    def _setters(self) -> dict[str, Callable[[Any], Any]]:
        return {
            COMPONENT_RL_MODULE: self.module.set_state,
            COMPONENT_OPTIMIZER: self._set_optimizer_state,
            COMPONENT_METRICS_LOGGER: self.metrics.set_state,
            _CLOCKS: lambda value: setattr(self, "timesteps", dict(value)),
            _UPDATES: lambda value: setattr(self, "weights_seq_no", int(value)),
            _GENERATOR: lambda value: self.generator.set_state(torch.as_tensor(np.array(value))),
            _EXTRA: self.set_extra_state,
        }
