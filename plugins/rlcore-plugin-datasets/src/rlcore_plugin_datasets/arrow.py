"""The data of a dataset as Minari keeps them with Arrow: a folder `N` for each episode, in which one file has a table.

That file is `part-0.arrow`, in Arrow's own format, or `part-0.parquet`; `metadata.json` beside it has the seed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import ConfigError, StorageError
from rlcore_plugin_datasets.episode import Episode

if TYPE_CHECKING:
    from types import ModuleType

    import gymnasium

_OF_EPISODE: Final = "metadata.json"


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
        """Return two files for each episode."""
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

    def read(self, folder: Path, space: gymnasium.Space[Any], count: int, infos: bool) -> Iterator[Episode]:
        """Yield the episodes in their order.

        Raises:
            ConfigError: pyarrow is missing.
            StorageError: an episode is damaged or missing, or there are more than `count`; names it.
        """
        tables = _tables()
        if (folder / str(count)).exists():
            raise StorageError(f"{folder} has an episode {count}, and its metadata say {count} episodes; it is damaged")
        for number in range(count):
            said, data = self._of_episode(folder, number)
            try:
                own = json.loads(said.read_bytes())
                seed = own.get("seed")
                episode = tables.episode_of(tables.read_table(data), space, None if seed is None else int(seed), infos)
                if len(episode) != own["total_steps"]:
                    raise ValueError(f"it has {len(episode)} steps, and {said} says {own['total_steps']}")
            except (OSError, KeyError, ValueError, TypeError, AttributeError, tables.ArrowError) as error:
                raise StorageError(
                    f"{data}, episode {number} cannot be read: {error}; the file is damaged, missing, or was cut off"
                ) from None
            yield episode

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
