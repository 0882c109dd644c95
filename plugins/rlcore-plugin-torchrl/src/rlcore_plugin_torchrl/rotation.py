"""Which checkpoints of a script are kept, and where, in the words of TorchRL."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from rlcore.checkpoints import Best, Latest, Retention, best, scan
from rlcore.errors import ArgumentTypeError, ConfigError

# whether the checkpoint with the best evaluation is kept; or the name of a number in the metadata, and "min" or "max"
KeepBest: TypeAlias = bool | tuple[str, str]


@dataclass(frozen=True)
class CheckpointRotation:
    """Which checkpoints are kept, and where.

    Attributes:
        directory: made when the first checkpoint is saved.
        keep_last: how many of the latest are kept.
        keep_best: whether the one with the best evaluation is kept too; or the name of a metric, or of a number that
            `checkpoint_metadata` returns, with `"min"` or `"max"`. A checkpoint that is made before the number exists
            is not the best.
        prefix: only `checkpoint`; names begin with the frame.

    Raises:
        ConfigError: an argument that cannot be used.
    """

    directory: str | Path
    keep_last: int = 2
    keep_best: KeepBest | None = True
    prefix: str = "checkpoint"

    def __post_init__(self) -> None:
        if isinstance(self.keep_last, bool) or not isinstance(self.keep_last, int):
            raise ArgumentTypeError(f"keep_last = {self.keep_last!r}: expected a number of checkpoints")
        if self.keep_last < 1:
            raise ConfigError(f"keep_last = {self.keep_last}: at least one checkpoint is kept")
        if self.prefix != "checkpoint":
            raise ConfigError(f"prefix = {self.prefix!r}: names of checkpoints begin with the frame; leave it out")
        if self.keep_best is None or isinstance(self.keep_best, bool):
            return
        if not isinstance(self.keep_best, tuple) or len(self.keep_best) != 2:
            raise ArgumentTypeError(f"keep_best = {self.keep_best!r}: expected a bool, or (metric, 'min' or 'max')")
        name, mode = self.keep_best
        if not isinstance(name, str) or not name or mode not in ("min", "max"):
            raise ConfigError(f"keep_best = {self.keep_best!r}: expected the name of a metric, and 'min' or 'max'")

    @property
    def rated_by(self) -> tuple[str, str] | None:
        """The number that says which checkpoint is best, with `"min"` or `"max"`; None for the evaluation."""
        return self.keep_best if isinstance(self.keep_best, tuple) else None

    @property
    def retention(self) -> tuple[Retention, ...]:
        """The rules that a store follows."""
        return (Latest(self.keep_last), *((Best(self.rated_by),) if self.keep_best else ()))

    def checkpoints(self) -> tuple[Path, ...]:
        """Return the folders of the checkpoints that there are, oldest first."""
        return tuple(entry.path for entry in scan(Path(self.directory)).entries)

    def latest(self) -> Path | None:
        """Return the folder of the latest checkpoint."""
        return next(reversed(self.checkpoints()), None)

    def best(self) -> Path | None:
        """Return the folder of the best checkpoint; None where none is known to be, or none is kept as the best."""
        if not self.keep_best:
            return None
        entry = best(scan(Path(self.directory)).entries, self.rated_by)
        return None if entry is None else entry.path


def rotation_of(rotation: Any) -> CheckpointRotation:
    """Return a rotation, or one that keeps what a rotation of TorchRL keeps.

    Raises:
        ArgumentTypeError: it is neither.
    """
    if isinstance(rotation, CheckpointRotation):
        return rotation
    try:
        return CheckpointRotation(rotation.directory, rotation.keep_last, rotation.keep_best, rotation.prefix)
    except AttributeError:
        raise ArgumentTypeError(
            f"checkpoint_rotation: a {type(rotation).__name__}; expected an rlcore.CheckpointRotation"
        ) from None
