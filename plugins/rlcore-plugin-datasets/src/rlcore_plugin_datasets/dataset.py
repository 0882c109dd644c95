"""A dataset: a folder with `metadata.json` and the data, opened, verified, written as a whole."""

from __future__ import annotations

import logging
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import ConfigError, StorageError
from rlcore.files import LOCK_FILE, Lock, in_use
from rlcore_plugin_datasets.checksums import describe_files, first_changed
from rlcore_plugin_datasets.episode import Episode, problems
from rlcore_plugin_datasets.formats import FORMATS
from rlcore_plugin_datasets.metadata import METADATA, Metadata, metadata_text, read_metadata
from rlcore_plugin_datasets.syncing import sync, sync_all

if TYPE_CHECKING:
    import gymnasium

log = logging.getLogger(__name__)

# in the name of a folder that is not whole yet
_UNFINISHED: Final = "-unfinished-"

Spaces = tuple["gymnasium.Space[Any]", "gymnasium.Space[Any]"]


class Dataset:
    """Recorded episodes in a folder, in Minari's format.

    Args:
        folder: of the dataset.

    Attributes:
        folder: as given.
        metadata: what it says of itself.

    Raises:
        StorageError: it is no dataset, or of a format that is not known; names the file.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if (self.folder / "data").is_dir() and not (self.folder / METADATA).exists():
            self.folder /= "data"  # as Minari lays its own out
        self.metadata: Metadata = read_metadata(self.folder)

    @property
    def file(self) -> Path:
        """The file with the data, or the folder of many."""
        return FORMATS[self.metadata.data_format].place(self.folder)

    @property
    def spaces(self) -> Spaces:
        """The spaces of one observation and of one action."""
        return self.metadata.observation_space, self.metadata.action_space

    @property
    def kept(self) -> dict[str, Any]:
        """What the metadata say of the env, for a dataset that is made of this one; empty where they say nothing."""
        return {key: self.metadata.raw[key] for key in ("env_spec",) if key in self.metadata.raw}

    def verified(self) -> str:
        """Return the checksum of the data; those and the metadata are what was written, as far as it was noted.

        Nothing is allocated for what the metadata claim before this has found it stored.

        Raises:
            StorageError: data or metadata are others than were written, differ from each other, or cannot be read.
        """
        form, said = FORMATS[self.metadata.data_format], self.metadata
        found, expected = describe_files(self.folder, form.files(self.folder, said.episodes)), said.file
        if expected and found != expected:
            changed = first_changed(found, expected)
            what = "was cut off or grew" if found["size"] != expected.get("size") else "has other bytes"
            raise StorageError(
                f"{self.file if changed is None else self.folder / changed} is damaged, as it {what}: the data have "
                f"{found['size']} bytes of checksum {found['xxh3']}, expected {expected.get('size')} of "
                f"{expected.get('xxh3')}"
            )
        steps = form.steps(self.folder, said.episodes)
        if steps != said.steps:
            raise StorageError(
                f"{self.file} has {steps:,} steps, and its metadata say {said.steps:,}; one of them is damaged"
            )
        if not said.is_whole:
            raise StorageError(
                f"{self.folder / METADATA} is damaged, as it says something else than was written with the data; bring "
                "that file back, or record the dataset again"
            )
        return str(found["xxh3"])

    def episodes(self, infos: bool = False) -> Iterator[Episode]:
        """Yield the episodes.

        Args:
            infos: whether those of the steps are read too.

        Raises:
            StorageError: the file is damaged; names the episode.
        """
        read = FORMATS[self.metadata.data_format].read
        return read(self.folder, self.spaces[0], self.metadata.episodes, infos)

    def problems(self) -> Iterator[str]:
        """Yield what is wrong in the data, with file, episode and step; nothing of a dataset that is as it should be.

        Raises:
            StorageError: the file is damaged.
        """
        for number, episode in enumerate(self.episodes()):
            for problem in problems(episode, self.spaces):
                yield f"{self.file}, episode {number}, {problem}"


def write_dataset(
    folder: Path,
    spaces: Spaces,
    episodes: Iterable[Episode],
    more: dict[str, Any],
    compression: int | None = None,
    data_format: str = "hdf5",
) -> Dataset:
    """Write a dataset, whole or not at all, and return it. After a power cut it is whole or not there, too.

    Args:
        folder: where; must not exist.
        spaces: of one observation and of one action.
        episodes: to write, in this order.
        more: keys of the metadata besides.
        compression: level of gzip, 1 to 9; None for none.
        data_format: a key of `FORMATS`.

    Raises:
        ConfigError: the folder exists, there is no episode, the format lacks its library or has no gzip, or a dataset
            has no place for a space.
        StorageError: it cannot be written.
    """
    if folder.exists():
        raise ConfigError(f"{str(folder)!r} exists already; name another folder, or remove it")
    _remove_unfinished(folder.parent)
    place = folder.with_name(f".{folder.name}{_UNFINISHED}{secrets.token_hex(3)}")
    try:
        place.mkdir(parents=True)
        lock = Lock(place)  # by which another process knows whether this one is there
        form = FORMATS[data_format]
        count, steps = form.write(place, spaces[0], iter(episodes), compression)
        if not count:
            raise ConfigError(f"{str(folder)!r}: there is no episode to write")
        described = describe_files(place, form.files(place, count))
        text = metadata_text(spaces, count, steps, folder.name, described, more, data_format)
        sync_all(place)  # before the metadata, which tell of data that are there
        (place / METADATA).write_text(text, encoding="utf-8")
        sync(place / METADATA)
        (place / LOCK_FILE).unlink()
        sync(place)
        place.rename(folder)
        lock.release()
        sync(folder.parent)
    except OSError as error:
        raise StorageError(f"{str(folder)!r} cannot be written: {error}") from error
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return Dataset(folder)


def _remove_unfinished(folder: Path) -> None:
    """Remove what processes left that were killed while they wrote a dataset there; name what may be in use."""
    for place in folder.glob(f".*{_UNFINISHED}??????"):
        is_used = in_use(place)
        if is_used is None:
            log.warning("%s may be what a killed process left of a dataset; remove it, if none writes there", place)
        elif not is_used:
            log.warning("%s is removed: a killed process left it of a dataset that it did not finish", place)
            shutil.rmtree(place, ignore_errors=True)


def merged(datasets: list[Dataset], folder: Path, data_format: str = "hdf5") -> Dataset:
    """Write the episodes of several datasets into one, with the infos of their steps, and return it.

    Args:
        datasets: of equal spaces, in whatever formats.
        folder: of the new one; must not exist.
        data_format: of the new one, a key of `FORMATS`.

    Raises:
        ConfigError: their spaces differ, the folder exists, or a format lacks its library.
        StorageError: one is damaged, or nothing can be written.
    """
    first = datasets[0]
    for other in datasets[1:]:
        if other.spaces != first.spaces:
            raise ConfigError(
                f"{str(other.folder)!r} has the spaces {other.spaces[0]} and {other.spaces[1]}, and "
                f"{str(first.folder)!r} has {first.spaces[0]} and {first.spaces[1]}; only equal ones can be merged"
            )
    for dataset in datasets:
        dataset.verified()
    ids = [dataset.metadata.dataset_id for dataset in datasets]
    more = {**first.kept, "combined_datasets": ids, "rlcore": {"env": first.metadata.env_id}}
    episodes = (episode for dataset in datasets for episode in dataset.episodes(infos=True))
    return write_dataset(folder, first.spaces, episodes, more, data_format=data_format)
