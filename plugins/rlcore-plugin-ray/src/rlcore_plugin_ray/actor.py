"""The actor in which a rank runs, one process of Ray for each."""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING, NamedTuple

import torch

import rlcore
from rlcore_plugin_ray.meeting import Meeting

if TYPE_CHECKING:
    from rlcore_plugin_ddp.launchers import RankProgram


class Arrival(NamedTuple):
    """What an actor says of its place.

    Attributes:
        host: its name.
        address: at which others reach it.
        process: its number there.
        reaches_memory: whether it sees the memory of the process that watches.
        versions: of what has to be the same everywhere.
    """

    host: str
    address: str
    process: int
    reaches_memory: bool
    versions: dict[str, str]


class RankActor:
    """A rank; what it does runs in the main thread of its process."""

    def arrive(self, meeting: Meeting) -> Arrival:
        """Say where this is."""
        return arrival(meeting)

    def run(self, rank: int, meeting: Meeting, program: RankProgram) -> int:
        """Do what a rank does, and return its exit code."""
        code = program(rank, meeting.mailbox(), meeting)
        sys.stdout.flush()
        return code


def arrival(meeting: Meeting) -> Arrival:
    """Return where this process is."""
    import ray

    return Arrival(
        os.uname().nodename,
        str(ray.util.get_node_ip_address()),
        os.getpid(),
        meeting.reaches_memory(),
        versions(),
    )


def versions() -> dict[str, str]:
    """Return the versions of what has to be the same in every process."""
    return {"Python": platform.python_version(), "rlcore": rlcore.__version__, "torch": torch.__version__}
