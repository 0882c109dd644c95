"""A checkpoint back end together with its name, and the stores that it writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlcore.checkpoints.retention import DEFAULT, Retention
from rlcore.checkpoints.store import Store
from rlcore.types import Checkpointer


@dataclass(frozen=True)
class Backend:
    """A checkpoint back end that is ready to write.

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
        """Return the checkpoints in a folder, as this back end writes and reads them; see `Store`."""
        return Store(folder, self.checkpointer, self.name, retention, check_place)
