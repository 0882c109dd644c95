"""Arrays and numbers of NumPy out of the records of a pickle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rlcore.errors import StorageError
from rlcore_plugin_import.pickle_records import Record

if TYPE_CHECKING:
    from rlcore.types import Array


_CORES: Final = ("numpy._core", "numpy.core")
_SCALARS: Final = tuple(f"{core}.multiarray.scalar" for core in _CORES)
_RECONSTRUCT: Final = tuple(f"{core}.multiarray._reconstruct" for core in _CORES)
_FROM_BUFFER: Final = tuple(f"{core}.numeric._frombuffer" for core in _CORES)
# names of NumPy that a pickle of arrays has
NUMPY_NAMES: Final = (*_SCALARS, *_RECONSTRUCT, *_FROM_BUFFER, "numpy.ndarray", "numpy.dtype")
# spaces, with the generators of random numbers that they have; they are noted and not made
SPACE_NAMES: Final = (
    "gymnasium.spaces.box.Box",
    "gymnasium.spaces.discrete.Discrete",
    "gymnasium.spaces.multi_discrete.MultiDiscrete",
    "gymnasium.spaces.multi_binary.MultiBinary",
    "numpy.random._pickle.__generator_ctor",
    "numpy.random._pickle.__bit_generator_ctor",
    "numpy.random._pcg64.PCG64",
    "numpy.random.bit_generator.SeedSequence",
    "numpy.random.bit_generator.__pyx_unpickle_SeedSequence",
)
_KINDS: Final = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")


def array_of(value: Any, what: str) -> Array:
    """Return a new array of the numbers in a value: a number, or the record of an array or of a number.

    Args:
        value: of a pickle.
        what: it is, for messages.

    Raises:
        StorageError: it is nothing of the kind, or its bytes are not those of its shape.
    """
    if isinstance(value, int | float):
        return np.asarray(value)
    if not isinstance(value, Record):
        raise StorageError(f"{what} is no array of numbers")
    maker = value.made_by.text
    if maker in _SCALARS and len(value.arguments) == 2:
        return _array(value.arguments[1], value.arguments[0], (), "C", what)
    if maker in _FROM_BUFFER and len(value.arguments) == 4:
        data, dtype, shape, order = value.arguments
        return _array(data, dtype, shape, order, what)
    if maker in _RECONSTRUCT and isinstance(value.state, tuple) and len(value.state) == 5:
        _, shape, dtype, by_columns, data = value.state
        return _array(data, dtype, shape, "F" if by_columns else "C", what)
    raise StorageError(f"{what} is no array of numbers")


def _array(data: Any, dtype: Any, shape: Any, order: Any, what: str) -> Array:
    kind = _dtype(dtype, what)
    sizes = shape if isinstance(shape, tuple) else (shape,)
    if not isinstance(data, bytes | bytearray) or not all(type(size) is int and size >= 0 for size in sizes):
        raise StorageError(f"{what} is no array of numbers")
    if len(data) != math.prod(sizes) * kind.itemsize:
        raise StorageError(f"{what} has {len(data)} bytes, and its shape {list(sizes)} of {kind} needs others")
    array = np.frombuffer(bytes(data), kind).reshape(sizes, order="F" if order == "F" else "C")
    return array.astype(kind.newbyteorder("="))


def _dtype(record: Any, what: str) -> np.dtype[Any]:
    """Return the dtype of a record: of truth values, whole numbers or floats."""
    if isinstance(record, Record) and record.made_by.text == "numpy.dtype" and record.arguments:
        code = record.arguments[0]
        if isinstance(code, str) and code in _KINDS:
            is_big = isinstance(record.state, tuple) and len(record.state) > 1 and record.state[1] == ">"
            return np.dtype((">" if is_big else "<") + code)
    raise StorageError(f"{what} is no array of numbers")
