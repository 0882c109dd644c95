"""The finished episodes of a run that goes on, one line each: a file that a resume cuts back to its checkpoint."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import xxhash

from rlcore.errors import StorageError
from rlcore.files import GrowingFile
from rlcore_plugin_datasets.episode import ARRAYS, Episode
from rlcore_plugin_datasets.spaces import space_text, spaces_of

if TYPE_CHECKING:
    from rlcore_plugin_datasets.dataset import Spaces

SUFFIX: Final = ".episodes"
_FORMAT: Final = 1
_INFOS: Final = "infos"


class Journal:
    """Appends episodes to a file, the first line of which has the spaces.

    A line is whole or not there: the half one of a process that was killed is cut off when the file is opened again.

    Args:
        path: of the file; it is made with the first episode.
        spaces: of one observation and of one action.
    """

    def __init__(self, path: Path, spaces: Spaces) -> None:
        self.path = path
        self._file = GrowingFile(path)
        self._head = {"format": _FORMAT, "spaces": [space_text(space) for space in spaces]}

    def begin(self) -> None:
        """Begin with an empty file; one that is there gets another name."""
        self._guarded(self._file.set_aside)

    def append(self, episode: Episode) -> None:
        """Append an episode.

        Raises:
            StorageError: the disk refuses it.
        """
        if not self._file.size:
            self._file.append(_line(self._head))
        arrays: dict[str, Any] = {name: _packed(getattr(episode, name)) for name in ARRAYS}
        if episode.infos:
            arrays[_INFOS] = {name: _packed(values) for name, values in episode.infos.items()}
        self._guarded(lambda: self._file.append(_line(arrays)))

    def sync(self) -> None:
        """Hand everything to the disk.

        Raises:
            StorageError: it refuses.
        """
        self._guarded(self._file.flush)
        if not self.path.exists():
            return
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            self._guarded(lambda: os.fsync(descriptor))
        finally:
            os.close(descriptor)

    def position(self) -> dict[str, Any]:
        """Return how long the file is and the checksum of what it holds; all of that has reached the system.

        Raises:
            StorageError: the disk refuses it.
        """
        self._guarded(self._file.flush)
        return self._file.position()

    def go_back(self, position: Mapping[str, Any]) -> None:
        """Remove the episodes after a position.

        Raises:
            StorageError: what is before it is not there any more, or was changed.
        """
        if problem := self._guarded(lambda: self._file.go_back(position)):
            raise StorageError(f"{problem}; bring the file back, or resume with --fresh for this hook")

    def close(self) -> None:
        """Close the file."""
        self._guarded(self._file.close)

    def _guarded(self, act: Any) -> Any:
        try:
            return act()
        except OSError as error:
            raise StorageError(f"{self.path}: episodes cannot be recorded: {error}") from error


def read_journal(path: Path) -> tuple[Spaces, Iterator[Episode]]:
    """Return the spaces of a journal, and its episodes in their order. A half line at its end is left out.

    Raises:
        StorageError: it is none, or damaged; names the line.
    """
    lines = _lines(path)
    number, head = next(lines, (1, None))
    if not isinstance(head, dict) or head.get("format") != _FORMAT:
        raise StorageError(f"{path} is no file of recorded episodes, or of another format")
    try:
        spaces = spaces_of(*head["spaces"])
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise StorageError(f"{path}, line {number}: {error}") from None
    return spaces, (_episode(path, number, found) for number, found in lines)


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if not line.endswith(b"\n"):
                    return
                digest, _, text = line[:-1].partition(b" ")
                if xxhash.xxh3_64_hexdigest(text).encode() != digest:
                    raise StorageError(f"{path}, line {number}: it is damaged, as its checksum differs")
                yield number, json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise StorageError(f"{path} cannot be read: {error}") from None


def _line(content: Any) -> bytes:
    text = json.dumps(content, separators=(",", ":")).encode()
    return xxhash.xxh3_64_hexdigest(text).encode() + b" " + text + b"\n"


def _packed(array: Any) -> list[Any]:
    plain = np.ascontiguousarray(array)
    return [plain.dtype.str, list(plain.shape), base64.b64encode(plain.tobytes()).decode()]


def _episode(path: Path, number: int, arrays: Any) -> Episode:
    try:
        infos = {name: _unpacked(*values) for name, values in arrays.get(_INFOS, {}).items()}
        return Episode(**{name: _unpacked(*arrays[name]) for name in ARRAYS}, infos=infos)
    except (AttributeError, KeyError, ValueError, TypeError) as error:
        raise StorageError(f"{path}, line {number}: {error}") from None


def _unpacked(dtype: str, shape: list[int], text: str) -> Any:
    if np.dtype(dtype).kind not in "biuf":
        raise ValueError(f"{dtype} are no numbers")
    return np.frombuffer(base64.b64decode(text), dtype).reshape(shape).copy()
