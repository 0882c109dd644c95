"""Proofs with several ranks: any of them is killed at any moment, and the run ends as one that nothing happened to."""

from __future__ import annotations

import os
import random
import signal
import statistics
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from rlcore_plugin_testing.faults.killer import Process
from rlcore_plugin_testing.faults.recorder import compare
from rlcore_plugin_testing.prove.runs import DEADLINE, Runs
from rlcore_plugin_testing.prove.table import Row

_LOOK: Final = 0.005
# after the ranks are there again; they are built within it, and then train
_MOST_SECONDS: Final = 1.5


class RankRuns(Runs):
    """Trains a shortened run with ranks in several ways; see `Runs`."""

    def killed(self, kills: int, seed: int = 0) -> Row:
        """Kill ranks, one or all, at random moments; where a run ends before all kills are used up, begin another."""
        draw = random.Random(seed)
        back: list[float] = []
        by_rank: dict[int, int] = {}
        runs = done = 0
        row = Row(_claim(0), "does not hold", "no kill came before the end of a run")
        while done < kills and runs < kills:
            job = self._subject.job(f"killed-{runs}")
            runs += 1
            process = self._launcher.start(job.arguments())
            deadline = time.monotonic() + DEADLINE
            while done < kills and (rank := self._kill(process, draw, deadline, back)) is not None:
                by_rank[rank] = by_rank.get(rank, 0) + 1
                done += 1
                self._step("kill")
            code = process.wait(max(0.0, deadline - time.monotonic()))
            if code != 0:
                process.send(signal.SIGKILL)
                return Row(_claim(done), "does not hold", f"exit code {code}: {process.text()[-300:]}")
            repeated = compare(self.reference.recording, job.recording).repeated
            ranks = ", ".join(f"rank {rank}: {count}" for rank, count in sorted(by_rank.items()))
            again = f"ranks are there again after {1000 * statistics.median(back):.0f} ms" if back else ""
            figures = f"over {runs} runs, {ranks}; {repeated} iterations repeated in the last; {again}"
            row = self._row(_claim(done), job, figures)
            if row.verdict == "does not hold":
                break
        return row

    def _kill(self, process: Process, draw: random.Random, deadline: float, back: list[float]) -> int | None:
        """Kill a rank at a random moment, and wait until there are others; return which, or None at the end of the run.

        Args:
            process: the supervisor.
            draw: says which and when.
            deadline: of the clock, for all of it.
            back: takes the seconds until the ranks were there again.
        """
        before = self._ranks(process, deadline, other_than=[])
        if not before or process.wait(draw.uniform(0.0, _MOST_SECONDS)) is not None:
            return None
        rank = draw.randrange(len(before))
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(before[rank], signal.SIGKILL)
        began = time.monotonic()
        if not self._ranks(process, deadline, other_than=before):
            return None
        back.append(time.monotonic() - began)
        return rank

    def _ranks(self, process: Process, deadline: float, other_than: list[int]) -> list[int]:
        """Wait for a generation of ranks, and return their processes; none where the run is over before."""
        count = self._subject.ranks
        while process.wait(_LOOK) is None and time.monotonic() < deadline:
            found = [rank for template in _children(process.pid) for rank in _children(template)]
            if len(found) == count and not set(found) & set(other_than):
                return found
        return []


def _claim(kills: int) -> str:
    return f"{kills} {'rank' if kills == 1 else 'ranks'} killed = undisturbed"


def _children(process: int) -> list[int]:
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return []
