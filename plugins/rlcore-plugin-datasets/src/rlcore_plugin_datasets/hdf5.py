"""The data of a dataset: `main_data.hdf5`, a group for each episode, read and written through h5py alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import h5py
import numpy as np
from h5py import h5g, h5i, h5o, h5s

from rlcore.envs import Packed
from rlcore.errors import StorageError
from rlcore_plugin_datasets.episode import ARRAYS, Episode
from rlcore_plugin_datasets.leaves import paths_of

if TYPE_CHECKING:
    import gymnasium

    from rlcore.types import Array

DATA: Final = "main_data.hdf5"
_INFOS: Final = "infos"
# of what HDF5 knows of groups and arrays
_CACHE: Final = 1 << 20


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

    def read(self, folder: Path, space: gymnasium.Space[Any], count: int, infos: bool) -> Iterator[Episode]:
        """Yield the episodes of a file in their order.

        Raises:
            StorageError: it is damaged, truncated, or has other episodes than the metadata say; names the episode.
        """
        file, paths = folder / DATA, _paths(space)
        where = str(file)
        try:
            with h5py.File(file, "r") as data:
                _keep_little(data)
                if len(data) != count:
                    raise StorageError(f"{file} has {len(data)} episodes, and its metadata say {count}; it is damaged")
                for number in range(count):
                    where = f"{file}, episode {number}"
                    group = h5py.Group(h5g.open(data.id, f"episode_{number}".encode()))
                    yield _episode(group, space, paths, infos)
        except StorageError:
            raise
        except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:  # what h5py says of damaged files
            raise StorageError(f"{where} cannot be read: {error}; the file is damaged, or was cut off") from None


def _keep_little(data: Any) -> None:
    """Have HDF5 forget what it knows of arrays that were read, which would take 32 MiB of memory."""
    config = data.id.get_mdc_config()
    config.set_initial_size = True
    config.initial_size = config.min_size = config.max_size = _CACHE
    data.id.set_mdc_config(config)


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


def _episode(group: Any, space: gymnasium.Space[Any], paths: dict[str, str], infos: bool) -> Episode:
    arrays: dict[str, Array] = {name: _numbers(group, name) for name in ARRAYS[1:]}
    for name in ("terminations", "truncations"):
        arrays[name] = arrays[name].astype(bool)
    if isinstance(space, Packed):
        arrays["observations"] = space.pack({name: _numbers(group, path) for name, path in paths.items()})
    else:
        arrays["observations"] = _numbers(group, "observations")
    seed = group.attrs.get("seed")
    kept = dict(_infos(group[_INFOS], "")) if infos and _INFOS in group else {}
    return Episode(**arrays, seed=None if seed is None else int(np.asarray(seed)), infos=kept)


def _infos(group: Any, begin: str) -> Iterator[tuple[str, Array]]:
    """Yield the infos of each step, by names with `/` between a dict and what it holds."""
    for name, part in group.items():
        path = f"{begin}{name.removeprefix('_index_')}"  # of an element of a tuple
        if isinstance(part, h5py.Group):
            yield from _infos(part, f"{path}/")
        elif h5py.check_string_dtype(part.dtype) is not None:
            yield path, part.asstr()[()]
        else:
            yield path, _numbers(group, name)


def _numbers(group: Any, path: str) -> Array:
    """Return an array of numbers, read by the calls below h5py's objects, which would take half of the time."""
    found = h5o.open(group.id, path.encode())
    if h5i.get_type(found) != h5i.DATASET:
        raise ValueError(f"{path} are several arrays, and their space is that of one")
    shape, dtype = found.shape, found.dtype
    if dtype.kind not in "biuf":
        raise ValueError(f"{path} are {dtype}, and no numbers")
    if not shape:  # one number, or nothing at all
        return np.asarray(h5py.Dataset(found)[()])
    array: Array = np.empty(shape, dtype)
    found.read(h5s.ALL, h5s.ALL, array)
    return array
