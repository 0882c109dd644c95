"""The formats that Minari keeps data in, by the names that the metadata give them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from rlcore_plugin_datasets.arrow import ArrowData
from rlcore_plugin_datasets.hdf5 import HDF5Data

if TYPE_CHECKING:
    import gymnasium

    from rlcore_plugin_datasets.episode import Episode


class DataFormat(Protocol):
    """How the data of a dataset lie in its folder."""

    def place(self, folder: Path) -> Path:
        """Return what a message names when the data as a whole are not as they should be."""
        ...

    def files(self, folder: Path, count: int) -> list[Path]:
        """Return the files of so many episodes, in the order of their checksum."""
        ...

    def write(
        self, folder: Path, space: gymnasium.Space[Any], episodes: Iterator[Episode], compression: int | None
    ) -> tuple[int, int]:
        """Write episodes, and return how many episodes and steps these were.

        Args:
            folder: exists, and has no data yet.
            space: of one observation.
            episodes: to write.
            compression: level of gzip, 1 to 9; None for none.

        Raises:
            ConfigError: the format lacks its library, or has no gzip.
            StorageError: an episode has no place in it.
            OSError: something cannot be written.
        """
        ...

    def steps(self, folder: Path, count: int) -> int:
        """Return how many steps the episodes have, as the files store them; no array is read for it.

        Args:
            folder: of the dataset.
            count: how many episodes there are by the metadata.

        Raises:
            ConfigError: the format lacks its library.
            StorageError: the data are damaged, of another count, or claim more than they store.
        """
        ...

    def read(self, folder: Path, space: gymnasium.Space[Any], count: int, infos: bool) -> Iterator[Episode]:
        """Yield the episodes in their order.

        Nothing is executed or unpickled: what is read is numbers and texts that the files of the dataset store
        themselves. Nothing that they only claim is allocated.

        Args:
            folder: of the dataset.
            space: of one observation.
            count: how many episodes there are by the metadata.
            infos: whether those of the steps are read too.

        Raises:
            ConfigError: the format lacks its library.
            StorageError: the data are damaged, cut off, or of another count; names the file and the episode.
        """
        ...


FORMATS: Final[Mapping[str, DataFormat]] = {
    "hdf5": HDF5Data(),
    "arrow": ArrowData("arrow"),
    "parquet": ArrowData("parquet"),
}
