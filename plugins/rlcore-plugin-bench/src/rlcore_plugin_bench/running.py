"""A row that a queue has claimed, and the process that works on it."""

from __future__ import annotations

import signal
import subprocess
import time
from dataclasses import dataclass

from rlcore.files import Lock, in_use
from rlcore_plugin_bench.row import Row


@dataclass
class Running:
    """A row that this queue has claimed.

    Attributes:
        row: the row.
        lock: keeps other queues from the row.
        process: None where a process of an earlier queue still works on it.
        began: when its process was started.
        printed_before: bytes in its log then.
        from_frame: how far its checkpoint was then.
        measured_from: when the speed began to be measured, and the frames then; None before the first frame.
        stopped: whether it was asked to stop, as it cannot finish in time.
    """

    row: Row
    lock: Lock
    process: subprocess.Popen[bytes] | None
    began: float
    printed_before: int = 0
    from_frame: int = 0
    measured_from: tuple[float, int] | None = None
    stopped: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether nobody works on it any more."""
        return not in_use(self.row.run) if self.process is None else self.process.poll() is not None

    @property
    def watched(self) -> float | None:
        """Seconds that the whole run took; None where this process was not all of it."""
        return None if self.process is None or self.from_frame else round(time.monotonic() - self.began, 1)

    def stop(self) -> None:
        """Ask it to save its state and end."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
