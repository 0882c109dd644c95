"""Arrays of an HDF5 file of anyone: stored in that file itself, and no larger than what it stores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import h5py
import numpy as np
from h5py import h5d, h5i, h5l, h5o, h5s

from rlcore.errors import StorageError

if TYPE_CHECKING:
    from rlcore.types import Array

# what HDF5 keeps in memory of groups and arrays, which would grow to 32 MiB
_CACHE: Final = 1 << 20
# gzip makes no more than 1,032 bytes of one
MOST_BYTES_OF_ONE: Final = 1_100
# every array has a header in the file
_HEADER: Final = 64
_TEXTS_AT_ONCE: Final = 64
# what h5py raises for damaged files, and Python for numbers out of all bounds
_DAMAGED: Final = (OSError, KeyError, ValueError, TypeError, RuntimeError, MemoryError, OverflowError)


class HDF5Arrays:
    """Opens groups and arrays of an open file by hard links alone, and reads no array that claims what is not there.

    External storage, virtual arrays, and external and soft links would have HDF5 read other files, or the same one
    again. What is read together may store no more than the file has: an array that several names lead to counts each
    time.

    Args:
        data: the open file.
        where: its path.

    Attributes:
        root: the group in which everything lies.
        where: what is read, for messages.
    """

    def __init__(self, data: h5py.File, where: str) -> None:
        self.root: Any = data.id
        self.where = where
        self._size = Path(data.filename).stat().st_size
        self._left = self._size
        self._texts_left = self._size

    def has(self, group: Any, name: str) -> bool:
        """Return whether a group names something."""
        return bool(group.links.exists(name.encode()))

    def names(self, group: Any) -> list[str]:
        """Return the names in a group, in their order."""
        return [*h5py.Group(group)]

    def open(self, group: Any, path: str) -> Any:
        """Return a group or an array by its path.

        Raises:
            StorageError: a name on the way is a link to another place.
            KeyError: there is no such name.
        """
        for name in path.split("/"):
            try:
                kind = group.links.get_info(name.encode()).type
            except (KeyError, RuntimeError):  # it says nothing of the name
                raise KeyError(f"{path} is missing") from None
            if kind != h5l.TYPE_HARD:
                raise self._outside(f"{path!r} is a soft or external link")
            group = h5o.open(group, name.encode())
        return group

    def rows(self, group: Any, path: str) -> int:
        """Return how many rows an array has, which are stored."""
        array = self.open(group, path)
        self._check(array, path)
        return int(array.shape[0])

    def read(self, array: Any, path: str) -> Array:
        """Return the numbers or texts of an array.

        It calls what is below the objects of h5py, which would take half of the time.

        Args:
            array: as `open` returned it.
            path: by which it was opened, for messages.

        Raises:
            StorageError: it is stored elsewhere, or claims more than is stored.
            ValueError: it holds neither numbers nor texts.
        """
        if h5i.get_type(array) != h5i.DATASET:
            raise ValueError(f"{path} are several arrays, and their space is that of one")
        shape, dtype = self._check(array, path)
        if h5py.check_string_dtype(dtype) is not None:
            return self._texts(array, path)
        if dtype.kind not in "biuf":
            raise ValueError(f"{path} are {dtype}, and no numbers")
        if not shape:  # one number
            return np.asarray(h5py.Dataset(array)[()])
        numbers: Array = np.empty(shape, dtype)
        array.read(h5s.ALL, h5s.ALL, numbers)
        return numbers

    def numbers(self, group: Any, path: str) -> Array:
        """Return an array of numbers by its path; see `read`."""
        array = self.read(self.open(group, path), path)
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{path} are {array.dtype}, and no numbers")
        return array

    def _check(self, array: Any, path: str) -> tuple[tuple[int, ...], Any]:
        """Return shape and dtype of an array that is all in this file."""
        shape, dtype, stored = array.shape, array.dtype, array.get_storage_size()
        claimed = math.prod(shape) * dtype.itemsize
        if array.get_offset() is None and claimed:  # neither in one piece nor in the header
            self._check_layout(array, path)
            most = stored * MOST_BYTES_OF_ONE
        else:
            most = stored
        self._left -= stored + _HEADER
        if claimed > most or self._left < 0:
            raise StorageError(
                f"{self.where}: {path!r} claims {claimed:,} bytes as {dtype} {list(shape)}, and the file of "
                f"{self._size:,} bytes does not store them; it is damaged, or made to fill the memory"
            )
        return shape, dtype

    def _check_layout(self, array: Any, path: str) -> None:
        plan = array.get_create_plist()
        if plan.get_external_count():
            name = plan.get_external(0)[0].decode(errors="replace")
            raise self._outside(f"{path!r} is stored in another file, {name!r}")
        if plan.get_layout() == h5d.VIRTUAL:
            raise self._outside(f"{path!r} is a virtual array of other files")
        if plan.get_layout() == h5d.CHUNKED:
            chunks = math.prod(-(-size // piece) for size, piece in zip(array.shape, plan.get_chunk(), strict=True))
            if array.get_num_chunks() != chunks:
                raise StorageError(
                    f"{self.where}: {path!r} claims {chunks:,} pieces and stores {array.get_num_chunks():,}; it is "
                    "damaged, or was never written to its end"
                )

    def _texts(self, array: Any, path: str) -> Array:
        """Return the texts of an array, some at a time: many may be the same piece of the file."""
        texts = h5py.Dataset(array).asstr()
        if not array.shape:
            return np.asarray(texts[()])
        if len(array.shape) > 1:
            raise ValueError(f"{path} are texts {list(array.shape)}, and should be one of each row")
        count = array.shape[0]
        several: Array = np.empty(count, object)
        for begin in range(0, count, _TEXTS_AT_ONCE):
            piece = texts[begin : begin + _TEXTS_AT_ONCE]
            several[begin : begin + len(piece)] = piece
            if h5py.check_string_dtype(array.dtype).length is None:
                self._texts_left -= sum(map(len, piece))
            if self._texts_left < 0:
                raise StorageError(f"{self.where}: {path!r} has more text than the file has bytes; it is damaged")
        return several

    def _outside(self, what: str) -> StorageError:
        return StorageError(
            f"{self.where}: {what}, and only what a dataset's file stores itself is read; have who made it store the "
            "arrays in that file"
        )


@contextmanager
def arrays_of(file: Path) -> Iterator[HDF5Arrays]:
    """Open an HDF5 file for reading.

    Raises:
        StorageError: it is no such file, is damaged, or needs more memory than there is; also of what is read inside.
    """
    arrays: HDF5Arrays | None = None
    try:
        with h5py.File(file, "r") as data:
            config = data.id.get_mdc_config()
            config.set_initial_size = True
            config.initial_size = config.min_size = config.max_size = _CACHE
            data.id.set_mdc_config(config)
            arrays = HDF5Arrays(data, str(file))
            yield arrays
    except StorageError:
        raise
    except _DAMAGED as error:
        where = file if arrays is None else arrays.where
        raise StorageError(f"{where} cannot be read: {error}; the file is damaged, or was cut off") from None
