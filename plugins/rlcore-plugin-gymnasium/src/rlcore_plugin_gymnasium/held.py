"""What an env and its wrappers hold in their attributes, as data for a checkpoint and as a hash for each attribute.

Playing an episode again brings back what the episode brought about. What an env remembers of earlier episodes it does
not: a count, a best so far, statistics. The hashes tell, and `put_back.py` puts back what was taken here.

A piece of data is `[kind, content]`. What cannot be data (a renderer, a simulator in C, a lock) is `["skip", None]`; of
what can only be told apart, such as an iterator, there is a text.
"""

from __future__ import annotations

import enum
import random
import sys
import types
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import PurePath
from typing import Any, Final

import gymnasium
import numpy as np
import torch
import xxhash

from rlcore_plugin_gymnasium.chain import layers

Piece = list[Any]
OF_NUMBERS: Final = " of numbers"

# an env that holds more than this is not followed further
MOST_VALUES: Final = 5_000
MOST_BYTES: Final = 64 << 20
_DEEPEST: Final = 8
_MOST_NAMES: Final = 100
_SHORT: Final = 16
_MANY: Final = 200
_SKIPPED: Final[Piece] = ["skip", None]
# the chain itself, what never changes, and what a recording restores
LEFT_OUT: Final = {"env", "spec", "metadata", "_metadata", "_cached_spec", "_np_random_seed"}


def take(
    env: Any, copy: bool = True, ignored: frozenset[str] = frozenset(), weights: dict[str, int] | None = None
) -> tuple[dict[str, Piece], bool]:
    """Return what each layer of an env holds, by the name of its class, and whether that is all.

    Args:
        env: a single env with its wrappers, or a vector env.
        copy: whether arrays are copied; without, what is returned is only good until the next step.
        ignored: attributes of layers that are not looked at.
        weights: is filled with the number of values in each attribute of a layer.
    """
    taker = _Taker(copy)
    pieces: dict[str, Piece] = {}
    for layer in holding(env):
        name, number = type(layer).__name__, 1
        while name in pieces:
            number += 1
            name = f"{type(layer).__name__}#{number}"
        attributes = attributes_of(layer) or {}
        content = {}
        for attribute, value in attributes.items():
            if attribute not in LEFT_OUT and f"{name}.{attribute}" not in ignored:
                room = taker.values
                content[attribute] = taker.take(value, 1)
                if weights is not None:
                    weights[f"{name}.{attribute}"] = room - taker.values
        pieces[name] = ["object", content]
    return pieces, taker.is_complete


def holding(env: Any) -> list[Any]:
    """Return the layers of an env whose attributes count; those of a checker decide what it warns of, and no more."""
    return [layer for layer in layers(env) if not isinstance(layer, gymnasium.wrappers.PassiveEnvChecker)]


def hashes(pieces: Mapping[str, Piece], ignored: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return a hash for each attribute by its path, such as `"TimeLimit._elapsed_steps"`.

    Args:
        pieces: from `take`.
        ignored: paths to leave out.
    """
    hashes = {path: hash_of(piece) for name, piece in pieces.items() for path, piece in _leaves(piece, name)}
    return {path: value for path, value in hashes.items() if path not in ignored}


def held(env: Any, ignored: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return the hashes of what an env holds now."""
    return hashes(take(env, copy=False, ignored=ignored)[0], ignored)


def large_attributes(env: Any) -> set[str]:
    """Return the attributes of layers that hold many values, such as a table of transitions."""
    weights: dict[str, int] = {}
    take(env, copy=False, weights=weights)
    return {name for name, weight in weights.items() if weight > _MANY}


def shared(env: Any) -> dict[str, str]:
    """Return hashes of the data that all instances of an env share: in its classes and in their modules."""
    hashes: dict[str, str] = {}
    for kind in {kind for layer in layers(env) for kind in type(layer).__mro__}:
        if kind.__module__.partition(".")[0] in _LIBRARIES:
            continue
        of_module = getattr(sys.modules.get(kind.__module__), "__dict__", {})
        for prefix, names, fits in ((f"{kind.__name__}.", vars(kind), object), ("", of_module, _PLAIN_GLOBALS)):
            for name, value in names.items():
                if not name.startswith("__") and isinstance(value, fits):
                    piece = _Taker(copy=False).take(value, 0)
                    hashes[f"{prefix}{name}"] = hash_of(piece)
    return hashes


def contents(value: Any) -> str:
    """Return a hash of any value, such as an info of a step."""
    return hash_of(_Taker(copy=False).take(value, 0))


def hash_of(piece: Piece) -> str:
    """Return a hash of a piece of data, or what it is, if that is short."""
    kind, content = piece
    if kind in ("number", "array") and not content.ndim and content.dtype in _LIKE_PYTHON:
        kind, content = "plain", content.item()
    if kind == "plain" and (type(content) is not str or len(content) <= _SHORT):
        return repr(content)
    digest = xxhash.xxh3_64()
    _feed(digest, piece)
    return digest.hexdigest()


class _Taker:
    """Takes values until there are too many.

    Attributes:
        values: how many more may be taken.
        is_complete: whether nothing was left out for being too much.
    """

    def __init__(self, copy: bool) -> None:
        self.values = MOST_VALUES
        self.is_complete = True
        self._bytes = MOST_BYTES
        self._copy = copy
        self._seen: dict[int, Any] = {}

    def take(self, value: Any, depth: int) -> Piece:
        """Return a value as data."""
        if type(value) in _PLAIN:
            return ["plain", value]
        self.values -= 1
        if depth > _DEEPEST or self._is_too_much(self.values < 0):
            return _SKIPPED
        if isinstance(value, np.ndarray | np.generic | torch.Tensor | bytes | bytearray):
            return self._numbers(value)
        for kind, state in _GENERATORS.items():
            if isinstance(value, kind):
                return [kind.__name__, _as_data(state(value))]
        if id(value) in self._seen:  # of several names for one thing the first counts
            return _SKIPPED
        self._seen[id(value)] = value  # kept, so that no other comes to its place in memory
        if isinstance(value, list | tuple | deque | set | frozenset | dict):
            return self._container(value, depth)
        if isinstance(value, enum.Enum | PurePath) or _is_iterator(value):
            return ["text", _text(value)]
        return self.attributes(value, depth)

    def attributes(self, value: Any, depth: int) -> Piece:
        """Return the attributes of an object as data."""
        names = attributes_of(value)
        if names is None:
            return _SKIPPED
        return ["object", {name: self.take(item, depth + 1) for name, item in names.items() if name not in LEFT_OUT}]

    def _numbers(self, value: Any) -> Piece:
        if isinstance(value, torch.Tensor):
            detached = value.detach()
            return self._sized("tensor", detached) if value.layout == torch.strided else _SKIPPED
        if isinstance(value, bytes | bytearray):
            return self._sized("bytes", np.frombuffer(value, np.uint8))
        array = np.asarray(value)
        if not _can_be_saved(array.dtype):
            return _SKIPPED if array.dtype.hasobject else ["text", f"{array.dtype} {array.tobytes().hex()}"]
        return self._sized("number" if isinstance(value, np.generic) else "array", array)

    def _sized(self, kind: str, numbers: Any) -> Piece:
        """Return an array or tensor, or no more than its form, where that would be too much."""
        self._bytes -= numbers.nbytes
        if self._is_too_much(self._bytes < 0):
            self._bytes += numbers.nbytes
            return ["text", f"{numbers.dtype} {tuple(numbers.shape)}"]
        copied = numbers.clone() if isinstance(numbers, torch.Tensor) and self._copy else numbers
        return [kind, numbers.copy() if isinstance(numbers, np.ndarray) and self._copy else copied]

    def _container(self, value: Any, depth: int) -> Piece:
        kind = next(kind for kind in (dict, list, deque, tuple, set, frozenset) if isinstance(value, kind))
        if kind in (list, deque, tuple) and {type(item) for item in value} in ({float}, {int}):  # long ones in short
            array = np.array(value)
            if array.dtype.kind in "if":
                return self._sized(f"{kind.__name__}{OF_NUMBERS}", array)
        if self._is_too_much(len(value) > self.values):
            return ["text", f"{len(value)} values"]
        if kind is dict:
            return self._dict(value, depth)
        pieces = [self.take(item, depth + 1) for item in value]
        return [kind.__name__, sorted(pieces, key=hash_of) if kind in (set, frozenset) else pieces]

    def _dict(self, value: dict[Any, Any], depth: int) -> Piece:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return ["map", {key: self.take(item, depth + 1) for key, item in value.items()}]
        pairs = ((self.take(key, depth + 1), self.take(item, depth + 1)) for key, item in value.items())
        return ["pairs", [list(pair) for pair in pairs]]

    def _is_too_much(self, it_is: bool) -> bool:
        self.is_complete = self.is_complete and not it_is
        return it_is


# a number is the same as a number of Python, and as an array of no dimension: an env's own state may turn one into the
# other
_NUMBERS: Final = (["number"], ["array"])
_LIKE_PYTHON: Final = (np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_))
_PLAIN: Final = {type(None), bool, int, float, str}
_PLAIN_GLOBALS: Final = (bool, int, float, str, list, deque, np.ndarray, np.generic, np.random.Generator, random.Random)
_LIBRARIES: Final = {"gymnasium", "builtins", "typing", "abc", "collections", "mujoco"}
_GENERATORS: Final[dict[type, Any]] = {
    np.random.Generator: lambda value: value.bit_generator.state,
    np.random.RandomState: lambda value: value.get_state(legacy=False),
    random.Random: lambda value: {"state": np.array(value.getstate()[1], np.int64), "next": value.getstate()[2]},
    torch.Generator: lambda value: {"state": value.get_state()},
}


def attributes_of(value: Any) -> Mapping[str, Any] | None:
    """Return what is to be looked at of an object, or None when that is nothing."""
    if isinstance(value, gymnasium.Space):
        return {"_np_random": value._np_random}
    if isinstance(value, types.FunctionType):
        names, cells = value.__code__.co_freevars, value.__closure__ or ()
        return {name: cell.cell_contents for name, cell in zip(names, cells, strict=True) if _is_filled(cell)}
    top = getattr(type(value), "__module__", "").partition(".")[0]  # some types of extensions have none
    if isinstance(value, type | types.ModuleType) or (
        top in sys.stdlib_module_names and type(value) is not types.SimpleNamespace
    ):
        return None
    slots = [name for kind in type(value).__mro__ for name in _slots(kind) if hasattr(value, name)]
    slotted = {name: getattr(value, name) for name in slots}
    attributes = getattr(value, "__dict__", None)
    return (
        {**slotted, **(attributes if isinstance(attributes, Mapping) else {})}
        if slotted or attributes is not None
        else None
    )


def _slots(kind: type) -> Sequence[str]:
    names = vars(kind).get("__slots__", ())
    return [name for name in ((names,) if isinstance(names, str) else names) if not name.startswith("__")]


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018, empty cells raise
    except ValueError:
        return False
    return True


def _is_iterator(value: Any) -> bool:
    return hasattr(type(value), "__next__") and type(value).__module__ in ("builtins", "itertools")


def _text(value: Any) -> str:
    """Return a text that tells how far an iterator is, or what else has no parts."""
    if isinstance(value, types.GeneratorType):
        frame = value.gi_frame
        return "at its end" if frame is None else f"{frame.f_lasti} {contents(dict(frame.f_locals))}"
    if not _is_iterator(value):
        return repr(value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # later versions of Python cannot copy those of itertools
        try:
            return contents(list(value.__reduce__()))
        except Exception:
            return type(value).__name__


def _as_data(state: Any) -> Any:
    """Return the state of a generator with its keys in order."""
    return {key: _as_data(state[key]) for key in sorted(state)} if isinstance(state, Mapping) else state


@cache
def _can_be_saved(dtype: np.dtype[Any]) -> bool:
    try:
        torch.from_numpy(np.zeros(1, dtype))
    except (TypeError, ValueError):
        return False
    return True


def _leaves(piece: Piece, path: str) -> Iterator[tuple[str, Piece]]:
    kind, content = piece
    if kind not in ("object", "map") or len(content) > _MOST_NAMES:
        yield path, piece
        return
    for name, item in content.items():
        yield from _leaves(item, f"{path}.{name}")


def _feed(digest: xxhash.xxh3_64, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        value = value.cpu().resolve_conj().resolve_neg().contiguous().flatten().view(torch.uint8).numpy()
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, list) and value[:1] in _NUMBERS and not value[1].ndim and value[1].dtype in _LIKE_PYTHON:
        _feed(digest, ["plain", value[1].item()])
    elif isinstance(value, list):
        digest.update(b"[%d" % len(value))
        for item in value:
            _feed(digest, item)
    elif isinstance(value, dict):
        digest.update(b"{%d" % len(value))
        for key in sorted(value):  # attributes may have been set in another order
            digest.update(key.encode())
            _feed(digest, value[key])
    else:
        digest.update(f"{type(value).__name__} {value!r};".encode())
