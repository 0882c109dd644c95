"""The formats that Minari keeps data in, by the name that the metadata give them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rlcore_plugin_datasets import arrow, hdf5

if TYPE_CHECKING:
    import gymnasium

    from rlcore_plugin_datasets.episode import Episode


class Format(NamedTuple):
    """How data are written and read.

    Attributes:
        write: folder, space of one observation, episodes and level of gzip, to the counts of episodes and of steps.
        read: folder, space of one observation, count of episodes and whether infos are wanted, to the episodes.
        files: folder and count of episodes, to the files that the data lie in, in the order of their checksum.
        place: what is named when something is wrong with the data.
    """

    write: Callable[[Path, gymnasium.Space[Any], Iterator[Episode], int | None], tuple[int, int]]
    read: Callable[[Path, gymnasium.Space[Any], int, bool], Iterator[Episode]]
    files: Callable[[Path, int], list[Path]]
    place: Callable[[Path], Path]


def _of_arrow(name: str) -> Format:
    return Format(
        partial(arrow.write_episodes, name),
        partial(arrow.read_episodes, name),
        partial(arrow.data_files, name),
        lambda folder: folder,
    )


FORMATS: Final = {
    "hdf5": Format(hdf5.write_episodes, hdf5.read_episodes, hdf5.data_files, lambda folder: folder / hdf5.DATA),
    "arrow": _of_arrow("arrow"),
    "parquet": _of_arrow("parquet"),
}
