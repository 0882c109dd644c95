"""What a logger must keep that sends to a server: the contract of loggers, and all arrives there."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from rlcore.spooling.logger import FOLDER
from rlcore.spooling.spool import Spool
from rlcore_plugin_testing.contracts.logger import LoggerContract, Row


class SpoolingLoggerContract(LoggerContract):
    """Base of the tests of a logger that derives from `rlcore.spooling.logger.SpoolingLogger`."""

    cuts = False

    def logger(self, folder: Path) -> Any:
        """Build the logger of a run in `folder`; it sends in a thread, since a process for each test takes seconds."""
        logger = super().logger(folder)
        logger.process = False
        return logger

    def settle(self, folder: Path) -> None:
        """Wait until everything was sent; send what a logger that was closed left behind."""
        if not wait_until_sent(folder, 20):
            logger = self.logger(folder)
            assert logger.catch_up(60), "what was spooled is never sent"
            logger.close()

    def read_stored(self, folder: Path) -> list[Row]:
        """Return the rows in the spool."""
        lines = [line for file in (folder / FOLDER).glob("*/*.jsonl") for line in file.read_text().splitlines()]
        records = [json.loads(line) for line in lines]
        return [(record["step"], record["values"]) for record in records if record["kind"] == "metrics"]


def wait_until_sent(folder: Path, seconds: float) -> bool:
    """Wait until nothing waits in the spools of a run folder, and return whether that came about."""
    deadline = time.monotonic() + seconds
    while waits := any(Spool(place).waiting for place in (folder / FOLDER).glob("*")):
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return not waits
