"""The data of a dataset as Minari keeps them with Arrow: a folder `N` for each episode, in which one file has a table.

That file is `part-0.arrow`, in Arrow's own format, or `part-0.parquet`; `metadata.json` beside it has the seed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import ConfigError, StorageError
from rlcore_plugin_datasets.checksums import own_file, read_own
from rlcore_plugin_datasets.episode import ARRAYS, Episode

if TYPE_CHECKING:
    from types import ModuleType

    import gymnasium

_INFOS: Final = "infos"
_OF_EPISODE: Final = "metadata.json"
_MOST_BYTES: Final = 1 << 20
# what is raised for damaged files, and for numbers out of all bounds
_DAMAGED: Final = (OSError, KeyError, ValueError, TypeError, AttributeError, RecursionError, MemoryError, OverflowError)


class ArrowData:
    """Writes and reads such folders; see `DataFormat`.

    Args:
        name: `arrow` or `parquet`.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def place(self, folder: Path) -> Path:
        """Return the folder of the dataset, as its episodes are in many files."""
        return folder

    def files(self, folder: Path, count: int) -> list[Path]:
        """Return two files for each episode.

        Raises:
            StorageError: there are others than `count` episodes.
        """
        self._check_count(folder, count)
        return [file for number in range(count) for file in self._of_episode(folder, number)]

    def write(
        self, folder: Path, space: gymnasium.Space[Any], episodes: Iterator[Episode], compression: int | None
    ) -> tuple[int, int]:
        """Write a folder for each episode, and return how many episodes and steps these were.

        Raises:
            ConfigError: pyarrow is missing, or `arrow` is to be compressed, which has no gzip.
            StorageError: an episode has arrays that make no table.
            OSError: something cannot be written.
        """
        tables = _tables()
        if compression is not None and self._name == "arrow":
            raise ConfigError("the format 'arrow' has no gzip; leave the compression out, or take 'parquet' or 'hdf5'")
        count = steps = 0
        for episode in episodes:
            said, data = self._of_episode(folder, count)
            said.parent.mkdir()
            try:
                tables.write_table(data, tables.table_of(episode, space), compression)
            except tables.ArrowError as error:
                raise StorageError(
                    f"episode {count} cannot be written as {self._name}: {error}; each of its arrays, infos too, needs "
                    "a value for each step or observation"
                ) from None
            own = {"id": count, "total_steps": len(episode)} | ({} if episode.seed is None else {"seed": episode.seed})
            said.write_text(json.dumps(own), encoding="utf-8")
            count, steps = count + 1, steps + len(episode)
        return count, steps

    def steps(self, folder: Path, count: int) -> int:
        """Return how many steps the episodes have, by the rows that their files store.

        Raises:
            ConfigError: pyarrow is missing.
            StorageError: an episode is damaged, missing or a link, or there are others than `count`; names it.
        """
        tables, steps = _tables(), 0
        self._check_count(folder, count)
        for number in range(count):
            with self._reading(folder, number, tables) as (data, _):
                steps += tables.rows_of(data, ARRAYS) - 1
        return steps

    def read(self, folder: Path, space: gymnasium.Space[Any], count: int, infos: bool) -> Iterator[Episode]:
        """Yield the episodes in their order.

        Raises:
            ConfigError: pyarrow is missing.
            StorageError: an episode is damaged, missing or a link, or there are others than `count`; names it.
        """
        tables = _tables()
        wanted = (*ARRAYS, _INFOS) if infos else ARRAYS
        self._check_count(folder, count)
        for number in range(count):
            with self._reading(folder, number, tables) as (data, own):
                seed = own.get("seed")
                episode = tables.episode_of(tables.read_table(data, wanted), space, None if seed is None else int(seed))
                if len(episode) != own["total_steps"]:
                    raise ValueError(f"it has {len(episode)} steps, and its {_OF_EPISODE} says {own['total_steps']}")
            yield episode

    def _check_count(self, folder: Path, count: int) -> None:
        """Refuse other episodes than the metadata tell of, before anything is made for each of them."""
        names = {entry.name for entry in os.scandir(folder)}
        if str(count) in names:
            raise StorageError(f"{folder} has an episode {count}, and its metadata say {count} episodes; it is damaged")
        missing = next((number for number in range(count) if str(number) not in names), None)
        if missing is not None:
            raise StorageError(f"{folder} has no episode {missing}, and its metadata say {count} episodes")

    @contextmanager
    def _reading(self, folder: Path, number: int, tables: ModuleType) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Yield the file with the table of an episode, and what the episode says of itself.

        Raises:
            StorageError: one cannot be read, and of whatever cannot be read inside; names the episode.
        """
        data = folder / str(number) / f"part-0.{self._name}"
        try:
            own = json.loads(read_own(folder, f"{number}/{_OF_EPISODE}", _MOST_BYTES))
            yield own_file(folder, f"{number}/{data.name}"), own
        except (*_DAMAGED, tables.ArrowError) as error:
            raise StorageError(
                f"{data}, episode {number} cannot be read: {error}; the file is damaged, missing, or was cut off"
            ) from None

    def _of_episode(self, folder: Path, number: int) -> tuple[Path, Path]:
        """Return the file that says what an episode is, and the one with its table."""
        return folder / str(number) / _OF_EPISODE, folder / str(number) / f"part-0.{self._name}"


def _tables() -> ModuleType:
    try:
        from rlcore_plugin_datasets import arrow_tables
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise ConfigError(
            "datasets in the formats 'arrow' and 'parquet' need pyarrow, which is not installed: "
            "pip install 'rlcore-plugin-datasets[arrow]'"
        ) from None
    return arrow_tables
