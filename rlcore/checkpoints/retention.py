"""Which checkpoints are kept: rules, each of which names some, after every save."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from rlcore.checkpoints.manifest import CheckpointEntry, best

if TYPE_CHECKING:
    from rlcore.config.core import CheckpointConfig


class Retention(Protocol):
    """A rule of which checkpoints are kept; a checkpoint that no rule keeps is removed."""

    def kept(self, entries: Sequence[CheckpointEntry]) -> Collection[CheckpointEntry]:
        """Return those that are kept.

        Args:
            entries: the checkpoints that there are, oldest first; what was removed before is not among them.
        """
        ...


@dataclass(frozen=True)
class Latest:
    """Keeps the latest `count` checkpoints."""

    count: int = 2

    def kept(self, entries: Sequence[CheckpointEntry]) -> Collection[CheckpointEntry]:
        """Return the last `count` of them, at least one."""
        return entries[-max(1, self.count) :]


@dataclass(frozen=True)
class Best:
    """Keeps the best checkpoint: by its evaluation, or `by` a number in its metadata and `"min"` or `"max"`."""

    by: tuple[str, str] | None = None

    def kept(self, entries: Sequence[CheckpointEntry]) -> Collection[CheckpointEntry]:
        """Return the best of them, where one is known to be."""
        entry = best(entries, self.by)
        return () if entry is None else (entry,)


@dataclass(frozen=True)
class EveryFrames:
    """Keeps the first checkpoint of each stretch of `frames`; of updates, where the run is counted in them."""

    frames: int

    def kept(self, entries: Sequence[CheckpointEntry]) -> Collection[CheckpointEntry]:
        """Return the first of them at or after each multiple of `frames`."""
        first_of: dict[int, CheckpointEntry] = {}
        for entry in entries:
            first_of.setdefault(entry.reached // self.frames, entry)
        return [entry for stretch, entry in first_of.items() if stretch]


DEFAULT: Final = (Latest(), Best())


def rules_of(settings: CheckpointConfig) -> tuple[Retention, ...]:
    """Return the rules that the keys of `[checkpoint]` ask for."""
    best_too = (Best(),) if settings.keep_best else ()
    spaced = (EveryFrames(settings.keep_every),) if settings.keep_every else ()
    return (Latest(settings.keep_last), *best_too, *spaced)


def surplus(entries: Sequence[CheckpointEntry], retention: Sequence[Retention]) -> list[CheckpointEntry]:
    """Return the checkpoints, oldest first, that no rule keeps."""
    kept = {entry.path for rule in retention for entry in rule.kept(entries)}
    return [entry for entry in entries if entry.path not in kept]
