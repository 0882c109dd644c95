"""Retention rules: after every save each rule names checkpoints to keep, and the others are removed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from rlcore.checkpoints.manifest import CheckpointEntry, best

if TYPE_CHECKING:
    from rlcore.config.core import CheckpointConfig


class Retention(Protocol):
    """Rule that names the checkpoints to keep; a checkpoint that no rule keeps is removed."""

    def kept(self, entries: Sequence[CheckpointEntry]) -> Collection[CheckpointEntry]:
        """Return the checkpoints to keep.

        Args:
            entries: the checkpoints on disk, oldest first.
        """
        ...


@dataclass(frozen=True)
class Latest:
    """Keeps the latest `count` checkpoints."""

    count: int = 2

    def kept(self, entries: Sequence[CheckpointEntry]) -> Collection[CheckpointEntry]:
        """Return the last `count` checkpoints, at least one."""
        return entries[-max(1, self.count) :]


@dataclass(frozen=True)
class Best:
    """Keeps the checkpoint with the best evaluation, or the best number in its metadata: `by=(key, "min" or "max")`."""

    by: tuple[str, str] | None = None

    def kept(self, entries: Sequence[CheckpointEntry]) -> Collection[CheckpointEntry]:
        """Return the best checkpoint, where one has a rating."""
        entry = best(entries, self.by)
        return () if entry is None else (entry,)


@dataclass(frozen=True)
class EveryFrames:
    """Keeps the first checkpoint of each stretch of `frames` frames, or updates where the run is counted in them."""

    frames: int

    def kept(self, entries: Sequence[CheckpointEntry]) -> Collection[CheckpointEntry]:
        """Return the first checkpoint at or after each multiple of `frames`."""
        first_of: dict[int, CheckpointEntry] = {}
        for entry in entries:
            first_of.setdefault(entry.reached // self.frames, entry)
        return [entry for stretch, entry in first_of.items() if stretch]


DEFAULT: Final = (Latest(), Best())


def rules_of(settings: CheckpointConfig) -> tuple[Retention, ...]:
    """Return the rules of the keys `keep_last`, `keep_best` and `keep_every` of `[checkpoint]`."""
    best_too = (Best(),) if settings.keep_best else ()
    spaced = (EveryFrames(settings.keep_every),) if settings.keep_every else ()
    return (Latest(settings.keep_last), *best_too, *spaced)


def surplus(entries: Sequence[CheckpointEntry], retention: Sequence[Retention]) -> list[CheckpointEntry]:
    """Return the checkpoints, oldest first, that no rule keeps."""
    kept = {entry.path for rule in retention for entry in rule.kept(entries)}
    return [entry for entry in entries if entry.path not in kept]
