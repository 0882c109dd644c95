"""The checkpoints of a run on disk: written, verified, listed and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.checkpoints.backend import Backend as Backend
    from rlcore.checkpoints.manifest import MANIFEST as MANIFEST
    from rlcore.checkpoints.manifest import CheckpointEntry as CheckpointEntry
    from rlcore.checkpoints.manifest import best as best
    from rlcore.checkpoints.manifest import committed as committed
    from rlcore.checkpoints.manifest import read_manifest as read_manifest
    from rlcore.checkpoints.manifest import read_state as read_state
    from rlcore.checkpoints.manifest import scan as scan
    from rlcore.checkpoints.manifest import verify as verify
    from rlcore.checkpoints.provenance import Provenance as Provenance
    from rlcore.checkpoints.removal import remove as remove
    from rlcore.checkpoints.retention import Best as Best
    from rlcore.checkpoints.retention import EveryFrames as EveryFrames
    from rlcore.checkpoints.retention import Latest as Latest
    from rlcore.checkpoints.retention import Retention as Retention
    from rlcore.checkpoints.retention import surplus as surplus

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.checkpoints.retention": "Best EveryFrames Latest Retention surplus",
        "rlcore.checkpoints.manifest": "MANIFEST CheckpointEntry best committed read_manifest read_state scan verify",
        "rlcore.checkpoints.backend": "Backend",
        "rlcore.checkpoints.provenance": "Provenance",
        "rlcore.checkpoints.removal": "remove",
    },
)
