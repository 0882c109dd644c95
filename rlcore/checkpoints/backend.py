"""A checkpointer together with the name of its component."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlcore.checkpoints.retention import DEFAULT, Retention
from rlcore.checkpoints.store import Store
from rlcore.types import Checkpointer


@dataclass(frozen=True)
class Backend:
    """A checkpointer with its name, from which the stores of a run are made.

    Attributes:
        checkpointer: writes and reads tensors.
        name: of its component; recorded in every manifest.
    """

    checkpointer: Checkpointer
    name: str

    def store(
        self,
        folder: Path,
        retention: Sequence[Retention] = DEFAULT,
        check_place: Callable[[], None] = lambda: None,
    ) -> Store:
        """Return a `Store` that writes and reads checkpoints in a folder by this back end."""
        return Store(folder, self.checkpointer, self.name, retention, check_place)
