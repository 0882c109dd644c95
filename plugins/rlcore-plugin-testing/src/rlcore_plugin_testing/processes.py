"""Real processes of a test, forked so that they start at once, whose answers come back as JSON."""

from __future__ import annotations

import json
import os
import select
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Final

_SECONDS: Final = 180.0


class Processes:
    """Processes that run one function, each with its number, and then end; those that are left are killed.

    Args:
        count: of processes.
        function: takes the number of its process, and returns what JSON can carry. It must not use threads that the
            process of the test began, such as torch's.
    """

    def __init__(self, count: int, function: Callable[[int], Any]) -> None:
        self._answers: list[int] = []
        self.pids: list[int] = []
        # none begins before all are forked: a thread that serves the first could hold a lock that the next inherits
        gate, opener = os.pipe()
        for number in range(count):
            answer, end = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(opener)
                os.read(gate, 1)
                _run(function, number, end)
            os.close(end)
            self._answers.append(answer)
            self.pids.append(pid)
        os.close(opener)
        os.close(gate)

    def results(self, stopped: Sequence[int] = ()) -> list[Any]:
        """Return what each answered; None for one that was killed.

        Args:
            stopped: the numbers of those that are not waited for.

        Raises:
            AssertionError: one raised an error, or has not ended in time.
        """
        texts = [b""] * len(self.pids)
        waiting = {answer: number for number, answer in enumerate(self._answers) if number not in stopped}
        until = time.monotonic() + _SECONDS
        while waiting and time.monotonic() < until:
            for answer in select.select(list(waiting), [], [], 1.0)[0]:
                piece = os.read(answer, 1 << 16)
                texts[waiting[answer]] += piece
                if not piece:
                    del waiting[answer]
        self._end()
        assert not waiting, f"processes {list(waiting.values())} have not ended after {_SECONDS:.0f} s"
        answers: list[dict[str, Any]] = [json.loads(text) if text else {"value": None} for text in texts]
        failed = [str(answer["error"]) for answer in answers if "error" in answer]
        assert not failed, "\n".join(failed)
        return [answer["value"] for answer in answers]

    def _end(self) -> None:
        for pid, answer in zip(self.pids, self._answers, strict=True):
            os.kill(pid, signal.SIGKILL)  # nobody has waited for it yet, so the number is still its own
            os.waitpid(pid, 0)
            os.close(answer)


def _run(function: Callable[[int], Any], number: int, end: int) -> None:
    """Answer, and end without what the process of the test does at its own end."""
    try:
        answer = {"value": function(number)}
    except BaseException:
        answer = {"error": traceback.format_exc()}
    try:
        with os.fdopen(end, "w") as pipe:
            json.dump(answer, pipe)
    finally:
        os._exit(0)
