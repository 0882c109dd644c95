"""The data of a dataset: `main_data.hdf5`, a group for each episode, read and written through h5py alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import h5py
import numpy as np
import xxhash

from rlcore.envs import Packed
from rlcore.errors import StorageError
from rlcore_plugin_datasets.episode import ARRAYS, Episode
from rlcore_plugin_datasets.leaves import paths_of

if TYPE_CHECKING:
    import gymnasium

    from rlcore.types import Array

DATA: Final = "main_data.hdf5"
_PIECE: Final = 1 << 22


def write_episodes(
    file: Path, space: gymnasium.Space[Any], episodes: Iterator[Episode], compression: int | None = None
) -> tuple[int, int]:
    """Write a new file, and return how many episodes and steps went into it.

    Args:
        file: must not exist.
        space: of one observation.
        episodes: to write.
        compression: level of gzip, 1 to 9; None for none.

    Raises:
        OSError: it cannot be written.
    """
    count = steps = 0
    how: dict[str, Any] = {} if compression is None else {"compression": "gzip", "compression_opts": compression}
    paths = _paths(space)
    with h5py.File(file, "x", track_order=True) as data:
        for episode in episodes:
            group = data.create_group(f"episode_{count}")
            group.attrs["id"] = count
            group.attrs["total_steps"] = len(episode)
            if episode.seed is not None:
                group.attrs["seed"] = episode.seed
            for path, array in _arrays(episode, space, paths):
                group.create_dataset(path, data=array, **how)
            count, steps = count + 1, steps + len(episode)
    return count, steps


def read_episodes(file: Path, space: gymnasium.Space[Any], count: int) -> Iterator[Episode]:
    """Yield the episodes of a file in their order. Nothing in it is executed or unpickled: what is read is numbers.

    Args:
        file: of the data.
        space: of one observation.
        count: how many episodes there are by the metadata.

    Raises:
        StorageError: it is damaged, truncated, or has other episodes than the metadata say; names the episode.
    """
    where, paths = str(file), _paths(space)
    try:
        with h5py.File(file, "r") as data:
            if len(data) != count:
                raise StorageError(f"{file} has {len(data)} episodes, and its metadata say {count}; it is damaged")
            for number in range(count):
                where = f"{file}, episode {number}"
                yield _episode(data[f"episode_{number}"], space, paths)
    except StorageError:
        raise
    except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:  # what h5py says of damaged files
        raise StorageError(f"{where} cannot be read: {error}; the file is damaged, or was cut off") from None


def describe_file(file: Path) -> dict[str, Any]:
    """Return size and checksum of a file (XXH3, 128 bits).

    Raises:
        StorageError: it cannot be read.
    """
    digest = xxhash.xxh3_128()
    try:
        with file.open("rb") as stream:
            while piece := stream.read(_PIECE):
                digest.update(piece)
            return {"size": stream.tell(), "xxh3": digest.hexdigest()}
    except OSError as error:
        raise StorageError(f"{file} cannot be read: {error}") from None


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


def _episode(group: Any, space: gymnasium.Space[Any], paths: dict[str, str]) -> Episode:
    arrays: dict[str, Array] = {name: _numbers(group, name) for name in ARRAYS[1:]}
    for name in ("terminations", "truncations"):
        arrays[name] = arrays[name].astype(bool)
    if isinstance(space, Packed):
        arrays["observations"] = space.pack({name: _numbers(group, path) for name, path in paths.items()})
    else:
        arrays["observations"] = _numbers(group, "observations")
    seed = group.attrs.get("seed")
    return Episode(**arrays, seed=None if seed is None else int(np.asarray(seed)))


def _numbers(group: Any, path: str) -> Array:
    found = group[path]
    if not isinstance(found, h5py.Dataset):
        raise ValueError(f"{path} are several arrays, and their space is that of one")
    if found.dtype.kind not in "biuf":
        raise ValueError(f"{path} are {found.dtype}, and no numbers")
    array: Array = found[()]
    return array
