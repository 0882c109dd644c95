"""The contract suite of a logger that sends to a server: that of every logger, and all of it arrives.

    from rlcore_plugin_spool.contracts import SpoolingLoggerContract

    class TestWandb(SpoolingLoggerContract):
        use = "wandb"

Needs rlcore-plugin-testing and pytest (`pip install "rlcore-plugin-spool[test]"`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from rlcore_plugin_testing.contracts import LoggerContract

from rlcore_plugin_spool.logger import FOLDER
from rlcore_plugin_spool.spool import Spool

__all__ = ["SpoolingLoggerContract", "wait_until_sent"]


class SpoolingLoggerContract(LoggerContract):
    """Base of the tests of a logger that derives from `SpoolingLogger`.

    Attributes:
        asks_what_arrived: whether it can ask the server, so that nothing is sent twice when an answer was lost.
    """

    cuts = False
    asks_what_arrived: ClassVar[bool] = False

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

    def read_stored(self, folder: Path) -> list[tuple[int, Mapping[str, float]]]:
        """Return the rows in the spool."""
        lines = [line for file in (folder / FOLDER).glob("*/*.jsonl") for line in file.read_text().splitlines()]
        records = [json.loads(line) for line in lines]
        return [(record["step"], record["values"]) for record in records if record["kind"] == "metrics"]

    def test_what_arrived_before_the_answer_was_lost_is_not_sent_again(self, tmp_path: Path) -> None:
        """A row stands once on the server, also where the sender never heard that it came."""
        if not self.asks_what_arrived:
            pytest.skip("its server cannot be asked what arrived")
        logger = self.logger(tmp_path)
        logger.log_metrics({"a": 1.0}, 1)
        logger.log_metrics({"step": 2.0, "a": 2.0}, 2)  # servers have a column of that name
        assert logger.catch_up(60)
        logger.close()
        logger.spool.refresh()
        sent = logger.spool.sent
        sent.offset, sent.id = 0, ""  # neither the answer nor the id of the run came back
        logger.spool.write_sent()
        again = self.logger(tmp_path)
        again.log_metrics({"a": 3.0}, 3)
        again.close()
        self.settle(tmp_path)
        assert self.read_back(tmp_path) == [(1, {"a": 1.0}), (2, {"step": 2.0, "a": 2.0}), (3, {"a": 3.0})]


def wait_until_sent(folder: Path, seconds: float) -> bool:
    """Wait until nothing waits in the spools of a run folder, and return whether that came about."""
    deadline = time.monotonic() + seconds
    while waits := any(Spool(place).waiting for place in (folder / FOLDER).glob("*")):
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return not waits
