"""Putting back what an env held: into the very objects it has, since others of its parts may know them too."""

from __future__ import annotations

import contextlib
import random
import sys
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import torch

from rlcore_plugin_gymnasium.chain import layers
from rlcore_plugin_gymnasium.held import LEFT_OUT, OF_NUMBERS, Piece, attributes_of, holding, take

_ABSENT: Final = object()


def put_back(env: Any, pieces: Mapping[str, Piece], ignored: frozenset[str]) -> None:
    """Let an env hold what was taken from one of its kind, as far as that can be done; `held` tells what could not.

    Args:
        env: an env of the same layers.
        pieces: from `take`, perhaps through a checkpoint.
        ignored: paths of attributes to leave alone.
    """
    names = take(env, copy=False)[0]
    put = _Putter(ignored, _constants(env))
    for layer, name in zip(holding(env), names, strict=True):
        if name in pieces:
            put(layer, pieces[name], name)


class _Putter:
    """Puts pieces of data into the places of values.

    Args:
        ignored: paths to leave alone.
        constants: by `id`, what classes and modules hold, which must not change with one env.
    """

    def __init__(self, ignored: frozenset[str], constants: set[int]) -> None:
        self._ignored = ignored
        self._constants = constants

    def __call__(self, value: Any, piece: Piece, path: str) -> Any:
        """Return what stands in the place of `value` now: the same object, wherever it can be changed."""
        kind, content = piece
        if value is not None and id(value) in self._constants:
            value = _ABSENT
        if value is _ABSENT and kind in _UNMADE:
            raise LookupError(f"{path}: nothing is here that this could be put into")
        if path in self._ignored or kind in ("skip", "text"):
            return value
        if kind == "plain":
            return content
        if kind == "object":
            return self._object(value, content, path)
        if kind in _STATES:
            return _set_state(value, kind, content)
        if kind in ("number", "array", "tensor", "bytes"):
            return _numbers(value, kind, content)
        return self._container(value, kind, content, path)

    def _object(self, value: Any, content: Mapping[str, Piece], path: str) -> Any:
        if callable(value) and hasattr(value, "__closure__"):
            names = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
            for name, cell in names:
                if name in content:
                    cell.cell_contents = self(cell.cell_contents, content[name], f"{path}.{name}")
            return value
        here = attributes_of(value)
        if here is None:
            return value
        for name, piece in content.items():
            with contextlib.suppress(Exception):  # it stays as it is, and its hash will tell
                attribute = getattr(value, name, _ABSENT)
                after = self(attribute, piece, f"{path}.{name}")
                if after is not attribute:
                    object.__setattr__(value, name, after)
        for name in here:
            if name not in content and name not in LEFT_OUT and f"{path}.{name}" not in self._ignored:
                object.__delattr__(value, name)
        return value

    def _container(self, value: Any, kind: str, content: Any, path: str) -> Any:
        if kind in ("map", "pairs"):
            target = value if isinstance(value, dict) else {}
            if kind == "map":
                after = {key: self(target.get(key, _ABSENT), item, f"{path}.{key}") for key, item in content.items()}
            else:
                after = {self(_ABSENT, key, path): self(_ABSENT, item, path) for key, item in content}
            target.clear()
            target.update(after)
            return target
        original = list(value) if isinstance(value, list | tuple | deque) else []
        if kind.endswith(OF_NUMBERS):
            kind, items = kind.removesuffix(OF_NUMBERS), np.asarray(content).tolist()
        else:
            present = [*original, *[_ABSENT] * len(content)]
            items = [self(old, item, path) for old, item in zip(present, content, strict=False)]
        return _filled(value, kind, items)


def _filled(value: Any, kind: str, items: list[Any]) -> Any:
    """Return a list, tuple, deque or set with these items: the one there was, if it can be changed."""
    if kind == "tuple":
        fields = hasattr(type(value), "_fields")
        return type(value)(*items) if fields else tuple(items)
    made: Any = {"list": list, "deque": deque, "set": set, "frozenset": frozenset}[kind]
    if kind == "frozenset" or not isinstance(value, made):
        return made(items)
    value.clear()
    (value.update if kind == "set" else value.extend)(items)
    return value


def _numbers(value: Any, kind: str, content: Any) -> Any:
    if kind == "tensor":
        if isinstance(value, torch.Tensor) and (value.shape, value.dtype) == (content.shape, content.dtype):
            with torch.no_grad():
                return value.copy_(content)
        return content.clone()
    array = np.asarray(content)
    if kind == "bytes":
        return array.tobytes() if not isinstance(value, bytearray) else bytearray(array.tobytes())
    if kind == "number":
        return array[()]
    fits = isinstance(value, np.ndarray) and (value.shape, value.dtype) == (array.shape, array.dtype)
    if fits and value.flags.writeable:
        value[...] = array
        return value
    return array.copy()


def _set_state(value: Any, kind: str, content: Any) -> Any:
    """Set the state of a generator; one of NumPy is made where there is none yet, of others nothing can be done."""
    if value is None and "bit_generator" in content and kind == "Generator":
        value = np.random.Generator(getattr(np.random, content["bit_generator"])())
    if type(value).__name__ == kind:
        _STATES[kind](value, content)
    return value


def _set_numpy(value: Any, state: Mapping[str, Any]) -> None:
    if value.bit_generator.state["bit_generator"] == state["bit_generator"]:
        value.bit_generator.state = state


_STATES: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "Generator": lambda value, state: (
        value.set_state(state["state"]) if isinstance(value, torch.Generator) else _set_numpy(value, state)
    ),
    "RandomState": lambda value, state: value.set_state(state),
    "Random": lambda value, state: value.setstate(
        (random.Random.VERSION, tuple(np.asarray(state["state"]).tolist()), state["next"])
    ),
}


# what is not made again, only changed
_UNMADE: Final = {"skip", "text", "object", *_STATES}


def _constants(env: Any) -> set[int]:
    """Return the `id` of what the classes of an env, and their modules, hold."""
    kinds = {kind for layer in layers(env) for kind in type(layer).__mro__}
    places = [*map(vars, kinds), *(getattr(sys.modules.get(kind.__module__), "__dict__", {}) for kind in kinds)]
    return {id(value) for names in places for value in names.values()}
