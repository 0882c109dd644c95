"""What a simulator of VMAS keeps from step to step: the attributes of its scenario, its world and their entities.

Scenarios write attributes as they like, so they are looked for: tensors, numbers, names, and lists, tuples and dicts of
them. One that refers to an agent or a landmark is saved as the number of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor
from vmas.simulator.environment import Environment

from rlcore.errors import StorageError

# where a variable is: the path of what holds it, and its name there
Place: TypeAlias = tuple[str, Any]

_CONSTANT: Final = (
    type,
    Enum,
    FunctionType,
    MethodType,
    BuiltinFunctionType,
    ModuleType,
    torch.Size,
    torch.device,
    torch.dtype,
    frozenset,
)
_PLAIN: Final = (type(None), bool, int, float, str, Tensor, np.ndarray)


class Variables(NamedTuple):
    """The variables of a simulator, found by walking through it.

    Attributes:
        holders: lists and dicts, and those of the attributes of objects, by path.
        values: of the variables.
        entities: agents and landmarks.
        unknown: paths of what could not be saved.
    """

    holders: dict[str, Any]
    values: dict[Place, Any]
    entities: list[Any]
    unknown: list[str]

    @classmethod
    def of(cls, simulator: Environment) -> Variables:
        """Return those of a simulator as they are."""
        entities = [*simulator.world.agents, *simulator.world.landmarks]
        found = cls({"": vars(simulator)}, {("", "steps"): simulator.steps}, entities, [])
        walk = _Walk(found)
        for path, root in (("scenario", simulator.scenario), ("world", simulator.world)):
            walk.into(path, root)
        for number, entity in enumerate(entities):
            walk.into(f"entity {number}", entity)
        return found

    def copied(self) -> dict[Place, Any]:
        """Return the values, which later steps leave as they are; what is one tensor stays one."""
        copies: dict[int, Tensor] = {}

        def copy(value: Any) -> Any:
            if isinstance(value, Tensor):
                return copies.setdefault(id(value), value.clone())
            return value.copy() if isinstance(value, np.ndarray) else value

        return {place: _mapped(copy, value) for place, value in self.values.items()}

    def put_back(self, values: Mapping[Place, Any], ended: Tensor) -> None:
        """Put back the values from before a reset of all worlds, but in those where an episode ended, `[world]`.

        What a scenario keeps once for all worlds is put back as well.
        """
        merged: dict[tuple[int, int], Tensor] = {}

        def merge(new: Any, old: Any) -> Any:
            if isinstance(new, Tensor) and isinstance(old, Tensor):
                pair = id(new), id(old)
                if pair not in merged:
                    of_worlds = new.shape == old.shape and new.shape[:1] == ended.shape
                    mask = ended.reshape(-1, *[1] * (new.dim() - 1)) if of_worlds else None
                    merged[pair] = old.clone() if mask is None else torch.where(mask, new, old)
                return merged[pair]
            if isinstance(new, list | tuple) and type(new) is type(old) and len(new) == len(old):
                return type(new)(merge(*pair) for pair in zip(new, old, strict=True))
            if isinstance(new, dict) and isinstance(old, dict) and new.keys() == old.keys():
                return {name: merge(new[name], old[name]) for name in new}
            return new if old is None else old

        for place, new in self.values.items():
            if place in values:
                path, name = place
                self.holders[path][name] = merge(new, values[place])

    def state_dict(self) -> dict[str, Any]:
        """Return the values in the form of a checkpoint."""
        tensors: list[Tensor] = []
        numbers: dict[int, int] = {}

        def encode(value: Any) -> Any:
            if isinstance(value, Tensor):
                if id(value) not in numbers:
                    numbers[id(value)] = len(tensors)
                    tensors.append(value.clone())
                return {"tensor": numbers[id(value)]}
            if isinstance(value, np.ndarray):
                return {"array": value.copy()}
            return value if isinstance(value, _PLAIN) else {"entity": self.entities.index(value)}

        def coded(value: Any) -> Any:
            if isinstance(value, dict):
                return {"dict": [[coded(name), coded(item)] for name, item in value.items()]}
            if isinstance(value, list | tuple):
                return {type(value).__name__: [coded(item) for item in value]}
            return encode(value)

        values = [[path, coded(name), coded(value)] for (path, name), value in self.values.items()]
        return {"tensors": tensors, "values": values}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Write the values of a simulator of the same scenario.

        Raises:
            StorageError: it is of another scenario, or of other arguments.
        """
        tensors = [tensor.to(device, copy=True) for tensor in state["tensors"]]

        def decoded(coded: Any) -> Any:
            if not isinstance(coded, dict):
                return coded
            ((kind, content),) = coded.items()
            if kind == "dict":
                return {decoded(name): decoded(item) for name, item in content}
            if kind in ("list", "tuple"):
                items = [decoded(item) for item in content]
                return items if kind == "list" else tuple(items)
            return {
                "tensor": lambda: tensors[content],
                "array": lambda: content.copy(),
                "entity": lambda: self.entities[content],
            }[kind]()

        for path, name, value in state["values"]:
            if path not in self.holders:
                raise StorageError(f"the checkpoint has {path} of a scenario of VMAS, and this one has no such thing")
            self.holders[path][decoded(name)] = decoded(value)


class _Walk:
    """Fills variables in, each object once."""

    def __init__(self, found: Variables) -> None:
        self._found = found
        self._entities = {id(entity) for entity in found.entities}
        self._visited: set[int] = set()

    def into(self, path: str, value: Any) -> None:
        """Look at what an object, a list or a dict holds."""
        if id(value) in self._visited:
            return
        self._visited.add(id(value))
        holder = value if isinstance(value, list | tuple | dict) else getattr(value, "__dict__", None)
        if holder is None:
            self._found.unknown.append(f"{path}, a {type(value).__name__}")
            return
        self._found.holders[path] = holder
        items = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for number, (name, item) in enumerate(items):
            self._look_at(path, name, item, f"{path}.{name if isinstance(name, str) else number}")

    def _look_at(self, path: str, name: Any, item: Any, own_path: str) -> None:
        if isinstance(item, _CONSTANT) or (isinstance(item, set) and all(isinstance(part, _CONSTANT) for part in item)):
            return
        if not self._is_value(item):
            self.into(own_path, item)
        elif isinstance(self._found.holders[path], tuple) or not self._is_value(name):
            self._found.unknown.append(own_path)
        else:
            self._found.values[path, name] = item

    def _is_value(self, value: Any) -> bool:
        if isinstance(value, Enum):
            return False
        if type(value) is dict:
            return all(map(self._is_value, value)) and all(map(self._is_value, value.values()))
        if type(value) in (list, tuple):
            return all(map(self._is_value, value))
        return isinstance(value, _PLAIN) or id(value) in self._entities


def _mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """Return a value with each of its parts changed."""
    if isinstance(value, dict):
        return {name: _mapped(change, item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_mapped(change, item) for item in value)
    return change(value)
