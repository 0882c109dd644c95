"""The data of a dataset: `main_data.hdf5`, a group for each episode, read and written through h5py alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import h5py
import numpy as np
from h5py import h5i

from rlcore.envs import Packed
from rlcore.errors import StorageError
from rlcore_plugin_datasets.checksums import own_file
from rlcore_plugin_datasets.episode import ARRAYS, Episode
from rlcore_plugin_datasets.hdf5_arrays import HDF5Arrays, arrays_of
from rlcore_plugin_datasets.leaves import paths_of

if TYPE_CHECKING:
    import gymnasium

    from rlcore.types import Array

DATA: Final = "main_data.hdf5"
_INFOS: Final = "infos"


class HDF5Data:
    """Writes and reads such a file; see `DataFormat`."""

    def place(self, folder: Path) -> Path:
        """Return the file."""
        return folder / DATA

    def files(self, folder: Path, count: int) -> list[Path]:
        """Return the one file, however many episodes are in it."""
        return [folder / DATA]

    def write(
        self, folder: Path, space: gymnasium.Space[Any], episodes: Iterator[Episode], compression: int | None
    ) -> tuple[int, int]:
        """Write a new file, and return how many episodes and steps went into it.

        Raises:
            OSError: it cannot be written.
        """
        count = steps = 0
        how: dict[str, Any] = {} if compression is None else {"compression": "gzip", "compression_opts": compression}
        paths = _paths(space)
        with h5py.File(folder / DATA, "x", track_order=True) as data:
            for episode in episodes:
                group = data.create_group(f"episode_{count}")
                group.attrs["id"] = count
                group.attrs["total_steps"] = len(episode)
                if episode.seed is not None:
                    group.attrs["seed"] = episode.seed
                for path, array in _arrays(episode, space, paths):
                    _write(group, path, array, how)
                count, steps = count + 1, steps + len(episode)
        return count, steps

    def steps(self, folder: Path, count: int) -> int:
        """Return how many steps the episodes have, by the shapes of stored arrays.

        Raises:
            StorageError: the file is damaged, has other episodes than the metadata say, or reads other files.
        """
        with _opened(folder, count) as arrays:
            return sum(arrays.rows(group, "rewards") for group in _groups(arrays, count))

    def read(self, folder: Path, space: gymnasium.Space[Any], count: int, infos: bool) -> Iterator[Episode]:
        """Yield the episodes of a file in their order.

        Raises:
            StorageError: it is damaged, truncated, has other episodes than the metadata say, or reads other files;
                names the episode.
        """
        paths = _paths(space)
        with _opened(folder, count) as arrays:
            for group in _groups(arrays, count):
                yield _episode(arrays, group, space, paths, infos)


@contextmanager
def _opened(folder: Path, count: int) -> Iterator[HDF5Arrays]:
    file = own_file(folder, DATA)
    with arrays_of(file) as arrays:
        there = arrays.root.get_num_objs()
        if there != count:
            raise StorageError(f"{file} has {there} episodes, and its metadata say {count}; it is damaged")
        yield arrays


def _groups(arrays: HDF5Arrays, count: int) -> Iterator[Any]:
    """Yield the groups of the episodes in their order."""
    file = arrays.where
    for number in range(count):
        arrays.where = f"{file}, episode {number}"
        yield arrays.open(arrays.root, f"episode_{number}")


def _paths(space: gymnasium.Space[Any]) -> dict[str, str]:
    """Return where the leaves of observations that are dicts lie in an episode; nothing for others."""
    if not isinstance(space, Packed):
        return {}
    return {name: f"observations/{path}" for name, path in paths_of(space.leaves).items()}


def _arrays(episode: Episode, space: gymnasium.Space[Any], paths: dict[str, str]) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of an episode, and where they lie in its group."""
    if isinstance(space, Packed):
        for name, path in paths.items():
            yield path, space.array(episode.observations, name).astype(space.leaves[name].dtype)
    else:
        yield "observations", episode.observations
    for name in ARRAYS[1:]:
        yield name, getattr(episode, name)
    for name, path in paths_of(episode.infos, "/").items():
        yield f"{_INFOS}/{path}", episode.infos[name]


def _write(group: Any, path: str, array: Array, how: dict[str, Any]) -> None:
    dtype = h5py.string_dtype() if array.dtype.kind == "O" else None
    group.create_dataset(path, data=array, dtype=dtype, **how)


def _episode(
    stored: HDF5Arrays, group: Any, space: gymnasium.Space[Any], paths: dict[str, str], infos: bool
) -> Episode:
    arrays: dict[str, Array] = {name: stored.numbers(group, name) for name in ARRAYS[1:]}
    for name in ("terminations", "truncations"):
        arrays[name] = arrays[name].astype(bool)
    if isinstance(space, Packed):
        arrays["observations"] = space.pack({name: stored.numbers(group, path) for name, path in paths.items()})
    else:
        arrays["observations"] = stored.numbers(group, "observations")
    seed = h5py.Group(group).attrs.get("seed")
    kept = dict(_infos(stored, stored.open(group, _INFOS), "")) if infos and stored.has(group, _INFOS) else {}
    return Episode(**arrays, seed=None if seed is None else int(np.asarray(seed)), infos=kept)


def _infos(stored: HDF5Arrays, group: Any, begin: str) -> Iterator[tuple[str, Array]]:
    """Yield the infos of each step, by names with `/` between a dict and what it holds."""
    for name in stored.names(group):
        path = f"{begin}{name.removeprefix('_index_')}"  # of an element of a tuple
        part = stored.open(group, name)
        if h5i.get_type(part) == h5i.GROUP:
            yield from _infos(stored, part, f"{path}/")
        else:
            yield path, stored.read(part, path)
