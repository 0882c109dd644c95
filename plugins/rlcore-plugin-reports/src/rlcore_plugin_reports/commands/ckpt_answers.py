"""What the actions of `rlcore ckpt` answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ListedCheckpoint:
    """A checkpoint of a run.

    Attributes:
        id: its name.
        clock: what the run counts, `frames` or `updates`.
        now: at how many of them it was saved.
        size: in bytes.
        evaluation: mean return of the evaluation that was made there; null without one.
        exact: whether a resume from it gives the bits of a run that was not interrupted.
        backend: that wrote it.
        time: when it was saved, ISO 8601.
        marks: `newest` and `best`, where it is that.
    """

    id: str
    clock: str
    now: int
    size: int
    evaluation: float | None
    exact: bool
    backend: str
    time: str
    marks: list[str]


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a run.

    Attributes:
        checkpoints: that can be read, the latest first.
        problems: what is wrong with the others.
    """

    checkpoints: list[ListedCheckpoint]
    problems: list[str]


@dataclass(frozen=True)
class VerifiedCheckpoint:
    """A checkpoint, compared with its checksums.

    Attributes:
        id: its name.
        problem: what is damaged; null where it is whole.
        files: how many it has.
        foreign: files that are not its own.
    """

    id: str
    problem: str | None
    files: int
    foreign: list[str]


@dataclass(frozen=True)
class VerifiedCheckpoints:
    """What comparing every file with its checksum found.

    Attributes:
        checkpoints: in order of their frames.
    """

    checkpoints: list[VerifiedCheckpoint]


@dataclass(frozen=True)
class ShownCheckpoint:
    """What a checkpoint says about itself.

    Attributes:
        folder: of the checkpoint.
        manifest: the content of its `manifest.json`, without its checksum.
    """

    folder: str
    manifest: dict[str, Any]


@dataclass(frozen=True)
class PrunedCheckpoints:
    """The checkpoints that a run has no more, and those that stay.

    Attributes:
        removed: with `--dry-run` those that would be.
        kept: that are whole.
        problems: what is wrong with the others, which stay too.
    """

    removed: list[str]
    kept: list[str]
    problems: list[str]


@dataclass(frozen=True)
class ConvertedCheckpoint:
    """A checkpoint written again by another back end.

    Attributes:
        id: of the old one, which stays.
        backend: that wrote the old one.
        made: name of the new one.
        to: the back end that wrote it.
    """

    id: str
    backend: str
    made: str
    to: str
