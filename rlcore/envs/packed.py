"""Observations of several arrays: packed into one row of words per env, so that what carries an array carries a dict.

Each leaf keeps its dtype, in memory of the row; whoever looks at leaves views the row, and copies nothing. Collectors,
buffers, workers and checkpoints see one array of integers, and an observation that is one array pays nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import gymnasium
import numpy as np
import torch

from rlcore.envs.step_checks import as_numbers
from rlcore.envs.transformed import observation_dtype
from rlcore.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

    from rlcore.types.records import Array

# the leaf that says which actions are allowed
ACTION_MASK: Final = "action_mask"
_WORD: Final = np.dtype(np.int64)
# pixels of the shorter side of an image, from which on the convolutions of Mnih et al. (2015) fit into it
_LEAST_SIDE: Final = 36


class Packed(gymnasium.Space[Any]):
    """The space of observations that are dicts of arrays, each of them packed into `[words]`, int64.

    It is no `Box`: a model that takes any box of numbers would take words for numbers.

    Args:
        leaves: the space of each array by name, in this order; each has a shape and a dtype. Those of dicts within
            dicts are called `a.b`, and those of tuples by their numbers.
        choices: how many actions each choice has that the leaf `action_mask` allows or forbids; empty without one.

    Attributes:
        leaves: the same.
        choices: the same.
        words: of each row.
        dtypes: the dtype of each leaf, as rows hold it: that of its space, but single precision for wider floats.

    Raises:
        ConfigError: a leaf is no array of numbers, or there is none.
    """

    def __init__(self, leaves: Mapping[str, gymnasium.Space[Any]], choices: Sequence[int] = ()) -> None:
        if not leaves:
            raise ConfigError("[env] an observation that is a dict has no leaf")
        self.leaves = dict(leaves)
        self.choices = tuple(choices)
        others = [name for name, space in self.leaves.items() if not _is_array(space)]
        if others:
            space, kept = self.leaves[others[0]], sorted(_tops(self.leaves) - _tops(others))
            filters = bool(kept) and not is_flattenable(space)
            raise ConfigError(
                f"[env] the leaf {others[0]!r} of the observations is {space}, which is not one array of numbers; "
                + (_filter_for(kept) if filters else wrapper_for(space)),
                remedy={"env": {"wrappers": [{"use": "FilterObservation", "filter_keys": kept}]}} if filters else {},
            )
        self.dtypes = {name: np.dtype(observation_dtype(space)) for name, space in self.leaves.items()}
        self._begins: dict[str, int] = {}
        offset = 0
        for name, dtype in sorted(self.dtypes.items(), key=lambda item: -item[1].itemsize):
            self._begins[name] = offset // dtype.itemsize  # whole, since every width divides the wider ones before it
            offset += math.prod(self._shape_of(name)) * dtype.itemsize
        # leaves of dicts within dicts, or of a tuple; others are looked up as they are
        self._nested = any("." in name or name.isdigit() for name in self.leaves)
        self._torch_dtypes = {name: torch.from_numpy(np.empty(0, dtype)).dtype for name, dtype in self.dtypes.items()}
        self.words = -(-offset // _WORD.itemsize)
        super().__init__((self.words,), np.int64)

    def arrays(self, packed: Array) -> dict[str, Array]:
        """Return every leaf `[..., *shape]` of rows `[..., words]`, in the same memory."""
        return {name: self.array(packed, name) for name in self.leaves}

    def array(self, packed: Array, name: str) -> Array:
        """Return one leaf `[..., *shape]` of rows `[..., words]`, in the same memory."""
        shape, begin = self._shape_of(name), self._begins[name]
        flat: Array = packed.view(self.dtypes[name])[..., begin : begin + math.prod(shape)]
        return flat.reshape((*packed.shape[:-1], *shape))

    def tensors(self, packed: Tensor) -> dict[str, Tensor]:
        """Return every leaf `[..., *shape]` of rows `[..., words]`, in the same memory."""
        return {name: self.tensor(packed, name) for name in self.leaves}

    def tensor(self, packed: Tensor, name: str) -> Tensor:
        """Return one leaf `[..., *shape]` of rows `[..., words]`, in the same memory."""
        shape, begin = self._shape_of(name), self._begins[name]
        flat = packed.view(self._torch_dtypes[name])[..., begin : begin + math.prod(shape)]
        return flat if len(shape) == 1 else flat.reshape((*packed.shape[:-1], *shape))

    def joined(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """Return rows `[env, words]` of leaves `[env, *shape]`, which are cast to the dtypes of `dtypes`; new."""
        width = self.words * _WORD.itemsize
        # the wider ones come first, so that one follows the other without a gap
        names = sorted(self.leaves, key=lambda name: self._begins[name] * self.dtypes[name].itemsize)
        cast = [tensors[name].to(self._torch_dtypes[name]) for name in names]
        # by the rows of each: those of another leaf would let a program depend on how many envs there are
        leaves = [
            leaf.reshape(leaf.shape[0], math.prod(self._shape_of(name))) for leaf, name in zip(cast, names, strict=True)
        ]
        parts = [leaf.contiguous().view(torch.uint8) for leaf in leaves]
        gap = width - sum(part.shape[1] for part in parts)
        return torch.cat([*parts, parts[0].new_zeros(parts[0].shape[0], gap)], 1).view(torch.int64)

    def rows(self, num_envs: int | None = None) -> Array:
        """Return zeros `[env, words]`, or `[words]` without a number of envs."""
        return np.zeros(self.words if num_envs is None else (num_envs, self.words), dtype=np.int64)

    def write(self, observation: Any, arrays: Mapping[str, Array]) -> None:
        """Write a dict of arrays into leaves.

        Args:
            observation: arrays by the names of the leaves; or in dicts and tuples, as the env gives them.
            arrays: where each of them goes, as `arrays` returns it.

        Raises:
            ValueError: a leaf is missing, or unknown, or has another shape or kind of number; says which.
        """
        if self._nested:
            observation = leaf_values(observation, self.leaves)
        try:
            fits = len(observation) == len(arrays)
            for name, place in arrays.items():
                value = observation[name]
                if type(value) is not np.ndarray or value.shape != place.shape or value.dtype is not place.dtype:
                    value = self._fitting(name, value, place)
                place[...] = value
        except (KeyError, TypeError, IndexError):
            fits = False
        if not fits:
            present = sorted(observation) if isinstance(observation, Mapping) else type(observation).__name__
            raise ValueError(f"observation: expected the leaves {sorted(self.leaves)}, found {present}")

    def _fitting(self, name: str, value: Any, place: Array) -> Array:
        dtype = np.dtype(self.leaves[name].dtype)
        try:
            return as_numbers(value, place.shape, dtype)
        except (TypeError, ValueError) as error:
            raise ValueError(f"leaf {name!r} of the observation: {error}") from None

    def pack(self, observation: Any) -> Array:
        """Return the row `[words]` of a dict of arrays `[*shape]`, or rows of arrays `[..., *shape]`.

        Raises:
            ValueError: as for `write`.
        """
        observation = leaf_values(observation, self.leaves)
        name = next((name for name in self.leaves if name in observation), None)
        shape = () if name is None else np.shape(observation[name])
        batch_shape = shape[: len(shape) - len(self._shape_of(name))] if name is not None else ()
        rows = np.zeros((*batch_shape, self.words), dtype=np.int64)
        self.write(observation, self.arrays(rows))
        return rows

    def sample(self, *args: Any, **keywords: Any) -> Array:
        """Return the row `[words]` of a sample of every leaf; a mask allows an action of each choice."""
        row = self.pack({name: space.sample() for name, space in self.leaves.items()})
        if self.choices:
            begin, mask = 0, self.array(row, ACTION_MASK)
            for size in self.choices:
                if not mask[begin : begin + size].any():
                    mask[begin : begin + size] = 1
                begin += size
        return row

    def seed(self, seed: Any = None) -> Any:
        """Seed every leaf."""
        return {name: space.seed(None if seed is None else seed + n) for n, (name, space) in enumerate(self._items())}

    def contains(self, x: Any) -> bool:
        """Return whether every leaf of a row is in its space, as rows hold it."""
        if not isinstance(x, np.ndarray) or x.shape != self.shape or x.dtype != _WORD:
            return False
        return all(_holds(space, self.array(x, name)) for name, space in self._items())

    def held(self, name: str) -> gymnasium.Space[Any]:
        """Return the space of a leaf as rows hold it: that of the leaf, but single precision for wider floats."""
        space, dtype = self.leaves[name], self.dtypes[name]
        if not isinstance(space, gymnasium.spaces.Box) or space.dtype == dtype:
            return space
        with np.errstate(over="ignore"):  # a bound beyond the range of float32 is none
            return gymnasium.spaces.Box(space.low.astype(dtype), space.high.astype(dtype), dtype=dtype.type)

    def with_leaf(self, name: str, space: gymnasium.Space[Any]) -> Packed:
        """Return a space with another space for a leaf."""
        return Packed({**self.leaves, name: space}, self.choices)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Packed) and list(self._items()) == list(other._items())

    def __hash__(self) -> int:
        return hash(tuple(self.leaves))

    def __repr__(self) -> str:
        return f"Dict({', '.join(f'{name!r}: {space}' for name, space in self._items())})"

    def _items(self) -> list[tuple[str, gymnasium.Space[Any]]]:
        return list(self.leaves.items())

    def _shape_of(self, name: str) -> tuple[int, ...]:
        return cast("tuple[int, ...]", self.leaves[name].shape)


def _is_array(space: gymnasium.Space[Any]) -> bool:
    return space.shape is not None and space.dtype is not None and np.dtype(space.dtype).kind in "biuf"


def _holds(space: gymnasium.Space[Any], array: Array) -> bool:
    value = array.astype(space.dtype)
    return space.contains(value if space.shape else value[()])


def packed_space(space: gymnasium.Space[Any], actions: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
    """Return the space in which observations travel: a dict or tuple packed, others as they are.

    Args:
        space: of one observation.
        actions: the space of actions, which a leaf `action_mask` has to fit.

    Raises:
        ConfigError: a leaf is not one array, or the mask does not fit the actions.
    """
    if not is_nested(space):
        return space
    leaves = leaf_spaces(space)
    mask = leaves.get(ACTION_MASK)
    return Packed(leaves, () if mask is None else _choices_of(mask, actions))


def _choices_of(mask: gymnasium.Space[Any], actions: gymnasium.Space[Any]) -> list[int]:
    """Return how many actions each choice has.

    Raises:
        ConfigError: the space of masks does not fit the actions.
    """
    if isinstance(actions, gymnasium.spaces.Discrete):
        choices = [int(actions.n)]
    elif isinstance(actions, gymnasium.spaces.MultiDiscrete):
        choices = actions.nvec.reshape(-1).tolist()
    elif isinstance(actions, gymnasium.spaces.MultiBinary):
        choices = [2] * math.prod(actions.shape)
    else:
        raise ConfigError(
            f"[env] an {ACTION_MASK} goes with Discrete, MultiDiscrete and MultiBinary actions, not with {actions}"
        )
    if mask.shape != (sum(choices),):
        raise ConfigError(
            f"[env] the {ACTION_MASK} is {mask}; {actions} takes one of shape [{sum(choices)}], 1 for each action that "
            "is allowed, those of several choices one after the other; a bit is a choice between 0 and 1"
        )
    return choices


def wrapper_for(space: gymnasium.Space[Any]) -> str:
    """Return which Gymnasium wrapper makes an array of observations of a space, as `[env] wrappers` names it."""
    if is_flattenable(space):
        return 'the Gymnasium wrapper FlattenObservation makes one of it: [env] wrappers = ["FlattenObservation"]'
    return (
        "let the Gymnasium wrapper TransformObservation make one of it, in a class of your own that [env] wrappers "
        'names: wrappers = ["my_wrappers:MyObservations"]'
    )


def is_flattenable(space: gymnasium.Space[Any]) -> bool:
    """Return whether Gymnasium makes one array of numbers of what a space holds; a text is none that says anything."""
    try:
        return space.is_np_flattenable and not isinstance(space, gymnasium.spaces.Text)
    except NotImplementedError:  # of a space of another package, such as a text of its own
        return False


def _tops(leaves: Iterable[str]) -> set[str]:
    """Return the keys of an observation that leaves are in, which may be in dicts within it."""
    return {name.partition(".")[0] for name in leaves}


def _filter_for(leaves: list[str]) -> str:
    """Return which Gymnasium wrapper leaves these leaves of an observation alone."""
    kept = ", ".join(f'"{name}"' for name in leaves)
    return (
        'the Gymnasium wrapper FilterObservation leaves it out: [env] wrappers = [{ use = "FilterObservation", '
        f"filter_keys = [{kept}] }}]"
    )


def finite_in(space: gymnasium.Space[Any]) -> Callable[[Array], bool]:
    """Return what says of observations `[env, *shape]` of a space whether all their floats are finite."""
    if isinstance(space, Packed):
        floats = [name for name, dtype in space.dtypes.items() if dtype.kind == "f"]
        return lambda rows: all(np.isfinite(space.array(rows, name)).all() for name in floats)
    return lambda rows: rows.dtype.kind != "f" or bool(np.isfinite(rows).all())


def is_nested(space: gymnasium.Space[Any]) -> bool:
    """Return whether a space is one of dicts or tuples of others."""
    return isinstance(space, gymnasium.spaces.Dict | gymnasium.spaces.Tuple)


def is_image(space: gymnasium.Space[Any]) -> bool:
    """Return whether a space is one of images that are large enough for the convolutions of Mnih et al. (2015)."""
    sides = sorted(space.shape or ())[-2:] if isinstance(space, gymnasium.spaces.Box) else []
    return len(sides) == 2 and sides[0] >= _LEAST_SIDE


def leaf_spaces(space: gymnasium.Space[Any]) -> dict[str, gymnasium.Space[Any]]:
    """Return the spaces of the leaves of a dict or tuple of spaces.

    Raises:
        ConfigError: two leaves have the same name.
    """
    leaves: dict[str, gymnasium.Space[Any]] = {}
    for name, leaf in _spaces(space, ""):
        if name in leaves:
            raise ConfigError(f"[env] two leaves of the observations are called {name!r}; rename one")
        leaves[name] = leaf
    return leaves


def leaf_values(observation: Any, leaves: Collection[str]) -> Any:
    """Return the values of leaves by name, of an observation that is a dict or a tuple.

    Args:
        observation: arrays in dicts and tuples; anything else is returned as it is.
        leaves: the names of those there should be; what stands at such a place is not taken apart.
    """
    return dict(_values(observation, "", leaves)) if isinstance(observation, Mapping | tuple) else observation


def _spaces(space: gymnasium.Space[Any], name: str) -> Iterator[tuple[str, gymnasium.Space[Any]]]:
    if isinstance(space, gymnasium.spaces.Dict | gymnasium.spaces.Tuple):
        for key, part in _parts(space.spaces):
            yield from _spaces(part, f"{name}.{key}" if name else key)
    else:
        yield name, space


def _values(value: Any, name: str, leaves: Collection[str]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping | tuple) and name not in leaves:
        for key, part in _parts(value):
            yield from _values(part, f"{name}.{key}" if name else key, leaves)
    else:
        yield name, value


def _parts(whole: Any) -> Iterator[tuple[str, Any]]:
    pairs = whole.items() if isinstance(whole, Mapping) else enumerate(whole)
    return ((str(key), part) for key, part in pairs)
