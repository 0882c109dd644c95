"""Several modules by their ids, as one."""

from __future__ import annotations

import hashlib
from collections.abc import ItemsView, Iterator, KeysView, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor, nn

from rlcore.errors import ConfigError, did_you_mean
from rlcore_plugin_learners.columns import COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from rlcore_plugin_learners.module import RLModule, RLModuleSpec


class MultiRLModule(nn.Module):
    """Modules by their ids; each takes its own rows.

    Args:
        modules: by id.
    """

    def __init__(self, modules: Mapping[str, RLModule]) -> None:
        super().__init__()
        self._by_id = nn.ModuleDict()
        for module_id, module in modules.items():
            self.insert(module_id, module)

    def insert(self, module_id: str, module: RLModule) -> None:
        """Add a module.

        Raises:
            ConfigError: there is one of that id, or the id cannot be part of a path.
        """
        if module_id in self:
            raise ConfigError(f"there is a module {module_id!r} already; remove it first")
        if not module_id or "/" in module_id or "." in module_id or module_id.startswith("__"):
            raise ConfigError(f"{module_id!r} cannot be the id of a module: it is part of paths such as rl_module/ID")
        self._by_id[module_id] = module

    def remove(self, module_id: str) -> RLModule:
        """Take a module out and return it."""
        module = self[module_id]
        del self._by_id[module_id]
        return module

    def __getitem__(self, module_id: str) -> RLModule:
        if module_id not in self:
            raise ConfigError(
                f"there is no module {module_id!r}{did_you_mean(module_id, self.keys())}; there are "
                f"{', '.join(self.keys())}"
            )
        return self._by_id[module_id]  # type: ignore[return-value]

    def __contains__(self, module_id: object) -> bool:
        return module_id in self._by_id.keys()  # noqa: SIM118 - it takes any object

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def keys(self) -> KeysView[str]:
        """Return the ids."""
        return self._by_id.keys()

    def items(self) -> ItemsView[str, RLModule]:
        """Return ids and modules."""
        return self._by_id.items()  # type: ignore[return-value]

    def forward(self, batch: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Mapping[str, Tensor]]:
        """Return what `forward_train` does."""
        return self.forward_train(batch)

    def forward_train(self, batch: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Mapping[str, Tensor]]:
        """Return for each id in the batch what its module returns."""
        return {module_id: self[module_id].forward_train(columns) for module_id, columns in batch.items()}

    def get_state(self) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
        """Return the weights of every module, by id."""
        return {module_id: module.get_state() for module_id, module in self.items()}

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
class MultiRLModuleSpec:
    """Says how modules are built.

    Attributes:
        rl_module_specs: by id; a single one is that of `default_policy`.
    """

    rl_module_specs: RLModuleSpec | dict[str, RLModuleSpec] = field(default_factory=dict)

    def specs(self) -> dict[str, RLModuleSpec]:
        """Return the specs by id."""
        specs = self.rl_module_specs
        return {DEFAULT_MODULE_ID: specs} if isinstance(specs, RLModuleSpec) else specs

    def build(self, seed: int = 0) -> MultiRLModule:
        """Return the modules; the weights of each follow from the seed and its id."""
        return MultiRLModule({name: spec.build(seed_of(seed, name)) for name, spec in self.specs().items()})


def seed_of(seed: int, name: str) -> int:
    """Return a 63-bit seed that follows from another and a name."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
