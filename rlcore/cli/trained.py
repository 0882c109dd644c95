"""What `rlcore train` answers: where each of its runs is, how far it came, and why it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rlcore.run_folder.status import reached_by, read_status


@dataclass(frozen=True)
class Evaluated:
    """An evaluation in a training.

    Attributes:
        now: frames or updates at which it was made.
        mean_return: over its episodes; null where it is not finite.
        episodes: how many there were.
    """

    now: int
    mean_return: float | None
    episodes: int


@dataclass(frozen=True)
class RunEnd:
    """A run, as far as it was trained.

    Attributes:
        folder: of the run.
        state: `done`, `stopped-resumable`, `failed-resumable` or `failed`; `running` where another process trains it.
        reason: why it is so; empty where it came to its end.
        clock: what the run counts, `frames` or `updates`.
        now: how many of them are done.
        checkpoint: name of the latest; null without one.
        exact: whether a resume gives the bits of a run that was not interrupted; null where that is not known.
        losses: number of losses, by cause.
        evaluation: the last one; null without.
    """

    folder: str
    state: str
    reason: str = ""
    clock: str = "frames"
    now: int = 0
    checkpoint: str | None = None
    exact: bool | None = None
    losses: dict[str, int] = field(default_factory=dict)
    evaluation: Evaluated | None = None


@dataclass(frozen=True)
class Trained:
    """What was trained.

    Attributes:
        runs: one, or with `--seeds` one of each; none where nothing was trained, as with `--dry-run`.
    """

    runs: list[RunEnd]


def run_end(folder: Path) -> RunEnd:
    """Return how the run of a folder stands, by its status."""
    status = read_status(folder)
    evaluation = status.get("evaluation")
    return RunEnd(
        str(folder),
        status.get("state", "unknown"),
        status.get("reason", ""),
        "updates" if "updates" in status else "frames",
        reached_by(status),
        status.get("checkpoint"),
        status.get("exact"),
        status.get("losses", {}),
        Evaluated(**evaluation) if isinstance(evaluation, dict) else None,
    )
