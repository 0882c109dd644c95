"""Several modules by their ids, as one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, ItemsView, Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import gymnasium
import torch
from torch import nn

from rlcore.errors import ConfigError, UnwrittenEntryError, did_you_mean
from rlcore_plugin_learners.checkpointable import Checkpointable
from rlcore_plugin_learners.columns import COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from rlcore_plugin_learners.module import RLModule, RLModuleSpec, seeded
from rlcore_plugin_learners.originals import MULTI_RL_MODULE
from rlcore_plugin_learners.recorded import Recorded
from rlcore_plugin_learners.states import Paths, chosen

Result = TypeVar("Result")


class MultiRLModule(RLModule):
    """Modules by their ids; each takes its own rows.

    Args:
        modules: by id.
        observation_space: for what the modules share; likewise the next ones.
        action_space: see there.
        model_config: see there.
        inference_only: whether it only acts.
        rl_module_specs: specs by id, of which `setup` builds modules.

    Attributes:
        rl_module_specs: as given.
    """

    original = MULTI_RL_MODULE

    def __init__(
        self,
        modules: Mapping[str, RLModule] | None = None,
        *,
        observation_space: gymnasium.Space[Any] | None = None,
        action_space: gymnasium.Space[Any] | None = None,
        model_config: Mapping[str, Any] | None = None,
        inference_only: bool = False,
        rl_module_specs: Mapping[str, RLModuleSpec] | None = None,
    ) -> None:
        self.rl_module_specs = dict(rl_module_specs or {})
        super().__init__(observation_space, action_space, model_config, inference_only=inference_only)
        for module_id, module in (modules or {}).items():
            self.add_module(module_id, module)

    def setup(self) -> None:
        """Build the modules of `rl_module_specs`."""
        self._rl_modules = nn.ModuleDict()
        for module_id, spec in self.rl_module_specs.items():
            self.add_module(module_id, spec.build(seed_of(torch.initial_seed(), module_id)))

    def add_module(self, module_id: str, module: Any, *, override: bool = False) -> None:
        """Add a module.

        Args:
            module_id: a new one.
            module: the module.
            override: whether it takes the place of one of that id.

        Raises:
            ConfigError: there is one of that id, or the id cannot be part of a path.
        """
        if module_id in self and not override:
            raise ConfigError(f"there is a module {module_id!r} already; remove it first, or say override=True")
        if not module_id or "/" in module_id or "." in module_id or module_id.startswith("__"):
            raise ConfigError(f"{module_id!r} cannot be the id of a module: it is part of paths such as rl_module/ID")
        self._rl_modules[module_id] = module

    def remove_module(self, module_id: str, *, raise_err_if_not_found: bool = True) -> None:
        """Take a module out."""
        if raise_err_if_not_found or module_id in self:
            self[module_id]
            del self._rl_modules[module_id]

    def foreach_module(
        self, func: Callable[..., Result], *, return_dict: bool = False, **kwargs: Any
    ) -> list[Result] | dict[str, Result]:
        """Return what a function of an id and a module returns for each, in a list or by id."""
        results = {module_id: func(module_id, module, **kwargs) for module_id, module in self.items()}
        return results if return_dict else list(results.values())

    def __getitem__(self, module_id: str) -> RLModule:
        if module_id not in self:
            raise UnwrittenEntryError(
                f"there is no module {module_id!r}{did_you_mean(module_id, self.keys())}; there are "
                f"{', '.join(self.keys()) or 'none'}"
            )
        return self._rl_modules[module_id]  # type: ignore[return-value]

    def __contains__(self, module_id: object) -> bool:
        return module_id in self._rl_modules.keys()  # noqa: SIM118 - it takes any object

    def __iter__(self) -> Iterator[str]:
        return iter(self._rl_modules)

    def __len__(self) -> int:
        return len(self._rl_modules)

    def get(self, module_id: str, default: Any = None) -> Any:
        """Return a module, or the default where there is none of that id."""
        return dict(self.items()).get(module_id, default)

    def keys(self) -> KeysView[str]:
        """Return the ids."""
        return self._rl_modules.keys()

    def values(self) -> ValuesView[RLModule]:
        """Return the modules."""
        return self._rl_modules.values()  # type: ignore[return-value]

    def items(self) -> ItemsView[str, RLModule]:
        """Return ids and modules."""
        return self._rl_modules.items()  # type: ignore[return-value]

    def _forward_train(self, batch: Any, **kwargs: Any) -> dict[str, Any]:
        return {name: self[name].forward_train(columns, **kwargs) for name, columns in batch.items()}

    def _forward_exploration(self, batch: Any, **kwargs: Any) -> dict[str, Any]:
        return {name: self[name].forward_exploration(columns, **kwargs) for name, columns in batch.items()}

    def _forward_inference(self, batch: Any, **kwargs: Any) -> dict[str, Any]:
        return {name: self[name].forward_inference(columns, **kwargs) for name, columns in batch.items()}

    def as_multi_rl_module(self) -> MultiRLModule:
        """Return itself."""
        return self

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what the constructor takes for another one like this: positional arguments, and those by name."""
        arguments, keywords = super().get_ctor_args_and_kwargs()
        return arguments, keywords | {"rl_module_specs": specs_of(self)}

    def get_checkpointable_components(self) -> list[tuple[str, Checkpointable]]:
        """Return ids and modules."""
        return list(self.items())

    def get_state(
        self, components: Paths = None, *, not_components: Paths = None, inference_only: bool = False
    ) -> dict[str, Any]:
        """Return the weights of every module, by id; see `RLModule.get_state`."""
        only: dict[str, Any] = {"inference_only": True} if inference_only else {}
        return chosen({name: partial(m.get_state, **only) for name, m in self.items()}, components, not_components)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Set the weights of the modules that a state names, of this one or of a learner (`{"rl_module": ...}`).

        Raises:
            ConfigError: an id that is not here, or weights of another module.
        """
        if set(state) == {COMPONENT_RL_MODULE} and COMPONENT_RL_MODULE not in self:
            state = state[COMPONENT_RL_MODULE]
        modules = {module_id: self[module_id] for module_id in state}  # all are here before any is changed
        for module_id, module in modules.items():
            module.set_state(state[module_id])


@dataclass
class MultiRLModuleSpec(Recorded):
    """Says how modules are built.

    Attributes:
        rl_module_specs: by id; a single one is that of `default_policy`.
        multi_rl_module_class: a subclass of `MultiRLModule`.
        observation_space: for what the modules share; likewise the next ones.
        action_space: see there.
        model_config: see there.
        inference_only: whether they only act.
    """

    rl_module_specs: RLModuleSpec | dict[str, RLModuleSpec] = field(default_factory=dict)
    multi_rl_module_class: type[MultiRLModule] = MultiRLModule
    observation_space: gymnasium.Space[Any] | None = None
    action_space: gymnasium.Space[Any] | None = None
    model_config: dict[str, Any] = field(default_factory=dict)
    inference_only: bool = False

    @classmethod
    def from_module(cls, module: MultiRLModule) -> MultiRLModuleSpec:
        """Return how to build modules like others."""
        spaces = module.observation_space, module.action_space
        return cls(specs_of(module), type(module), *spaces, dict(module.model_config), module.inference_only)

    def specs(self) -> dict[str, RLModuleSpec]:
        """Return the specs by id."""
        specs = self.rl_module_specs
        return {DEFAULT_MODULE_ID: specs} if isinstance(specs, RLModuleSpec) else specs

    @property
    def module_specs(self) -> dict[str, RLModuleSpec]:
        """The specs by id."""
        return self.specs()

    def add_modules(self, module_specs: Mapping[str, RLModuleSpec]) -> None:
        """Add specs by id."""
        self.rl_module_specs = {**self.specs(), **module_specs}

    def remove_modules(self, module_ids: str | Collection[str]) -> None:
        """Take the specs of ids out."""
        out = {module_ids} if isinstance(module_ids, str) else set(module_ids)
        self.rl_module_specs = {name: spec for name, spec in self.specs().items() if name not in out}

    def as_multi_rl_module_spec(self) -> MultiRLModuleSpec:
        """Return itself."""
        return self

    def __contains__(self, module_id: object) -> bool:
        return module_id in self.specs()

    def __getitem__(self, module_id: str) -> RLModuleSpec:
        return self.specs()[module_id]

    def build(self, seed: int = 0) -> MultiRLModule:
        """Return the modules; the weights of each follow from the seed and its id."""
        with seeded(seed):
            return self.multi_rl_module_class(
                observation_space=self.observation_space,
                action_space=self.action_space,
                model_config=self.model_config,
                inference_only=self.inference_only,
                rl_module_specs=self.specs(),
            )


def specs_of(module: MultiRLModule) -> dict[str, RLModuleSpec]:
    """Return how each of several modules is built, by id; where `setup` is a subclass's own, that of its specs."""
    specs = module.rl_module_specs if type(module).setup is not MultiRLModule.setup else module.keys()
    return {module_id: RLModuleSpec.from_module(module[module_id]) for module_id in specs if module_id in module}


def seed_of(seed: int, name: str) -> int:
    """Return a 63-bit seed that follows from another and a name."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
