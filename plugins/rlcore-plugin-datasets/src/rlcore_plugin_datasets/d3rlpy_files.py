"""Files of d3rlpy, both of its formats: read as episodes, through h5py alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rlcore.errors import StorageError
from rlcore_plugin_datasets.episode import Episode
from rlcore_plugin_datasets.hdf5_arrays import HDF5Arrays, arrays_of

if TYPE_CHECKING:
    from rlcore.types import Array
    from rlcore_plugin_datasets.dataset import Spaces

_FLAT: Final = ("observations", "actions", "rewards", "terminals")
_ENDS: Final = "episode_terminals"
_READ: Final = "2.1"


def read_d3rlpy(file: Path) -> list[Episode]:
    """Return the episodes of a file that d3rlpy wrote: `ReplayBuffer.dump` of its second version, or of its first.

    Such an episode has no last observation. One that terminates gets its last one again, for which no value is asked;
    of one that was cut off, the last step is given up, so that its observation can be the last.

    Raises:
        StorageError: it is none, is damaged, or reads other files.
    """
    with arrays_of(file) as arrays:
        root = arrays.root
        if all(arrays.has(root, name) for name in _FLAT):
            return list(_flat(arrays))
        version = str(arrays.read(arrays.open(root, "version"), "version"))
        if version != _READ:
            raise StorageError(f"{file} is of version {version} of d3rlpy's format; {_READ} is what is read here")
        count = int(arrays.numbers(root, "num_episodes"))
        return [episode for number in range(count) for episode in _of_number(arrays, number)]


def spaces_of(episodes: list[Episode]) -> Spaces:
    """Return spaces in which the episodes fit, as the files say none: unbounded ones, and as many choices as occur."""
    from gymnasium import spaces

    observations, actions = episodes[0].observations, episodes[0].actions
    kind: Any = observations.dtype.type
    pixels = observations.dtype == np.uint8
    low, high = (0, 255) if pixels else (-np.inf, np.inf)
    seen = spaces.Box(low, high, observations.shape[1:], kind)
    if np.issubdtype(actions.dtype, np.integer):
        most = max(int(episode.actions.max()) for episode in episodes)
        return seen, spaces.Discrete(most + 1)
    taken: Any = actions.dtype.type
    return seen, spaces.Box(-np.inf, np.inf, actions.shape[1:], taken)


def fitted(episode: Episode, spaces: Spaces) -> Episode:
    """Return an episode whose arrays have the dtypes and shapes of spaces."""
    count = len(episode)
    observations = episode.observations.astype(spaces[0].dtype).reshape(count + 1, *(spaces[0].shape or ()))
    actions = episode.actions.astype(spaces[1].dtype).reshape(count, *(spaces[1].shape or ()))
    return replace(episode, observations=observations, actions=actions)


def _of_number(arrays: HDF5Arrays, number: int) -> Iterator[Episode]:
    if not arrays.has(arrays.root, f"observations_{number}"):
        raise ValueError(f"the observations of episode {number} are several arrays, which are not read here")
    observations, actions, rewards, terminated = (
        arrays.numbers(arrays.root, f"{name}_{number}") for name in ("observations", "actions", "rewards", "terminated")
    )
    yield from _episode(observations, actions, rewards, bool(terminated))


def _flat(arrays: HDF5Arrays) -> Iterator[Episode]:
    observations, actions, rewards, terminals = (arrays.numbers(arrays.root, name) for name in _FLAT)
    ends = arrays.numbers(arrays.root, _ENDS) if arrays.has(arrays.root, _ENDS) else terminals
    begin = 0
    for end in np.flatnonzero(ends.astype(bool) | terminals.astype(bool)).tolist():
        part = slice(begin, end + 1)
        yield from _episode(observations[part], actions[part], rewards[part], bool(terminals[end]))
        begin = end + 1
    if begin < len(rewards):
        yield from _episode(observations[begin:], actions[begin:], rewards[begin:], False)


def _episode(observations: Array, actions: Array, rewards: Array, terminated: bool) -> Iterator[Episode]:
    if terminated:
        observations = np.concatenate([observations, observations[-1:]])
    else:
        actions, rewards = actions[:-1], rewards[:-1]
    count = len(rewards)
    if not count:
        return
    if actions.ndim == 2 and actions.shape[1] == 1 and np.issubdtype(actions.dtype, np.integer):
        actions = actions[:, 0]
    last = np.arange(count) == count - 1
    flat = rewards.reshape(count).astype(np.float64)
    yield Episode(observations, actions, flat, last & terminated, last & (not terminated))
