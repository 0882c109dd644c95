"""Watches over the ranks of a run: starts them, passes a stop on, and begins them again when one of them dies."""

from __future__ import annotations

import json
import logging
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rlcore.checkpoints import committed
from rlcore.errors import RankLost, StorageError
from rlcore.process import AT_ONCE, Stillness, collected_stops, how_it_ended, nameless_file, signal_name
from rlcore.run import Asked, claimed
from rlcore.run_folder import CHECKPOINTS, RunState, Status, read_status
from rlcore.types import unit_of
from rlcore_plugin_ddp.ranks.board import RankBoard

log = logging.getLogger(__name__)

# seconds: between two looks at the ranks; for the others to end by themselves after one ended with an error; for all to
# be gone after they were killed
_LOOK: Final = 0.1
_ENDING: Final = 3.0
_KILLING: Final = 5.0
_PROGRAM: Final = "rlcore_plugin_ddp.ranks.program"


@dataclass(frozen=True)
class Death:
    """A rank that ended without a word, or does not move at all.

    Attributes:
        rank: its number.
        how: in words.
        place: where the run was, in words.
    """

    rank: int
    how: str
    place: str

    def __str__(self) -> str:
        """Return it in words."""
        return f"rank {self.rank} {self.how} at {self.place}"


class _Refused(Exception):  # noqa: N818 - not an error of this process
    """The run did not begin: the ranks said why."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Supervisor:
    """Keeps the folder of a run, and has its ranks trained to the end.

    Args:
        asked: what the command asks.
    """

    def __init__(self, asked: Asked) -> None:
        ranks = asked.ranks
        self._asked = asked
        self._restarts = ranks.restarts
        self._deadline = ranks.deadline
        self._place = asked.place
        self._board = RankBoard(ranks.count)
        self._status = Status(self._place.absolute())
        self._template: _TemplateProcess | None = None
        self._received: Sequence[int] = ()

    def run(self) -> int:
        """Train, and return the exit code of the command."""
        with collected_stops() as self._received:
            try:
                self._template = _TemplateProcess(self._asked, self._board)
                self._wait_until_ready()
                with claimed(self._place, self._asked.resume is not None):
                    code = self._generations()
            except _Refused as refused:
                return refused.code
            finally:
                if self._template is not None:
                    self._template.close()
        done = read_status(self._place.absolute()).get("state") == "done"
        return code or (128 + self._received[0] if self._received and not done else 0)

    def _wait_until_ready(self) -> None:
        """Wait until the template has everything imported, and found nothing wrong with the config."""
        assert self._template is not None
        while not (answers := self._template.answers(_LOOK)):
            if self._received:
                log.error("stopped by %s before the first frame", signal_name(self._received[0]))
                raise _Refused(128 + self._received[0])
            if (code := self._template.code()) is not None:
                raise _Refused(code if code > 0 else RankLost.exit_code)
        assert answers == [{"ready": True}], answers

    def _generations(self) -> int:
        """Train with one generation of ranks after another; return the exit code of the run without its stop."""
        deaths: list[Death] = []
        generation, reached = 1, -1
        while True:
            try:
                self._start(generation, reached)
                ended = self._until_ended()
            except _Refused as refused:
                if generation == 1 or refused.code > 128:
                    raise
                return self._failed(f"generation {generation} of the ranks cannot be started")
            if isinstance(ended, int):
                if ended not in (0, StorageError.exit_code):
                    self._save_kept(generation + 1)
                return ended
            now = self._reached()
            deaths = [*(deaths if now == reached else []), ended]
            reached = now
            if self._received:
                return self._failed(f"{ended} while the run was stopped", "stopped-resumable")
            if len(deaths) > self._restarts:
                listed = "; ".join(map(str, deaths))
                code = self._failed(f"{len(deaths)} deaths of ranks without progress in between: {listed}")
                self._save_kept(generation + 1)
                return code
            log.warning("%s; all ranks go on from %s %s", ended, unit_of(self._asked.clock), f"{max(0, now):,}")
            generation += 1

    def _save_kept(self, generation: int) -> None:
        """Let one more generation save the state that all ranks have kept, where no checkpoint is as new."""
        kept = self._board.kept()
        if kept is None or kept.frames <= self._saved() or self._received:
            return
        reason = str((read_status(self._place.absolute()) or {}).get("reason", ""))
        try:
            self._start(generation, kept.frames, reason or "failed")
            saved = self._until_ended() == 0
        except _Refused:
            saved = False
        if not saved:
            where = f"{unit_of(self._asked.clock)} {kept.frames:,}"
            log.error("the state of %s, before the failure, could not be saved", where)

    def _start(self, generation: int, reached: int, saves: str = "") -> None:
        """Let the template fork the ranks of a generation; one that is gone is started again."""
        if self._template is None or self._template.code() is not None:
            self._template = _TemplateProcess(self._asked, self._board)
            self._wait_until_ready()
        kept = self._board.kept()
        kept = kept if kept is not None and kept.frames >= reached else None
        self._board.begin_generation(kept)
        place = None if kept is None else kept.place
        start = {"generation": generation, "again": generation > 1, "further": reached >= 0, "place": place}
        self._template.say({"start": {**start, "saves": saves}})

    def _until_ended(self) -> Death | int:
        """Wait until the ranks of a generation are gone; return the exit code of the run, or the death of one."""
        running = set(range(self._board.size))
        watched = [Stillness(2 * _LOOK) for _ in running]
        death: Death | None = None
        failed: float | None = None
        failures: dict[int, int] = {}
        stops = 0
        while running:
            # one that blames another comes after the others
            for rank, how in sorted(self._ended(), key=lambda end: self._board.lost(end[0]) is not None):
                running.discard(rank)
                outcome = self._board.outcome(rank)
                if outcome is None and death is None and not failures:
                    death = self._death(rank, how)
                elif outcome:
                    failures[rank] = outcome
                    failed = failed or time.monotonic()
            if self._template is None or self._template.code() is not None:
                death = death or Death(0, "lost the process that it came from", self._where())
                break
            seconds = [stillness.look(pulse) for stillness, pulse in zip(watched, self._board.pulses(), strict=True)]
            still = next((rank for rank in running if seconds[rank] > self._deadline), None)
            if still is not None and death is None:
                how = f"did not move for {self._deadline:g} s"
                death = Death(still, how, self._where())
            if death is not None or (failed is not None and time.monotonic() > failed + _ENDING):
                self._kill(running)
                break
            stops = self._pass_on(stops, running)
        if failures:
            return self._ended_with(*next(iter(failures.items())))
        return 0 if death is None else death

    def _death(self, rank: int, how: str) -> Death:
        """Return the death of a rank that has ended, or that of the one which it blames for its end."""
        lost, why = self._board.lost(rank), self._board.why(rank)
        if lost in (None, rank):
            return Death(rank, f"{how}: {why}" if why else how, self._where())
        return Death(lost, f"is lost, as rank {rank} says ({why}),", self._where())

    def _ended(self) -> list[tuple[int, str]]:
        """Return the ranks that have ended since the last call, and how each did in words."""
        assert self._template is not None
        return [
            (answer["ended"], answer.get("how") or how_it_ended(answer["status"]))
            for answer in self._template.answers(_LOOK)
        ]

    def _pass_on(self, passed: int, running: set[int]) -> int:
        """Ask the ranks to stop where a signal asks this process; return how many signals were seen to."""
        if self._received and not passed:
            self._board.stop = self._received[0]
            self._stop_by = time.monotonic() + self._asked.grace
        if self._received:
            at_once = self._received.count(signal.SIGINT) > 1 or any(number in AT_ONCE for number in self._received)
            if at_once or time.monotonic() > self._stop_by:
                self._kill(running)
                number = self._received[-1] if at_once else self._received[0]
                self._failed(
                    f"stopped at once by {signal_name(number)}"
                    if at_once
                    else f"no safe point within {self._asked.grace:g} s of {signal_name(number)}",
                    "failed-resumable" if at_once else "stopped-resumable",
                )
                raise _Refused(128 + number)
        return len(self._received)

    def _kill(self, running: set[int]) -> None:
        """Kill the ranks of a generation, and wait until they are gone; or the template, with which they end."""
        assert self._template is not None
        self._template.say({"kill": True})
        until = time.monotonic() + _KILLING
        while running and time.monotonic() < until and self._template.code() is None:
            running -= {rank for rank, _ in self._ended()}
        if running:
            self._template.kill()

    def _ended_with(self, rank: int, code: int) -> int:
        """Return the exit code of an error, whose rank has printed it; where the first could not write it, write it."""
        if not self._board.has_begun(0):
            raise _Refused(code)
        if self._board.outcome(0) is None:
            self._failed(f"rank {rank}: {self._board.why(rank)}")
        return code

    def _failed(self, reason: str, state: RunState = "failed-resumable") -> int:
        """Write the status of a run that ended in its middle, and say so; return its exit code."""
        frames = self._reached()
        try:
            self._status.write(state if frames >= 0 else "failed", max(0, frames), reason, clock=self._asked.clock)
        except StorageError as error:
            log.error("%s", error)
        continued = f"; continue with: rlcore train --resume {self._place}" if frames >= 0 else ""
        log.error("error: %s%s", reason, continued)
        return RankLost.exit_code

    def _where(self) -> str:
        """Return how far the ranks are, in words."""
        return f"{unit_of(self._asked.clock)} {self._board.reached():,}"

    def _reached(self) -> int:
        """Return where, on the clock of the run, a further generation would go on; -1 where it would begin."""
        kept = self._board.kept()
        return max(self._saved(), -1 if kept is None else kept.frames)

    def _saved(self) -> int:
        """Return where the latest checkpoint is, on the clock of the run; -1 where there is none."""
        try:
            checkpoints = committed(self._place.absolute() / CHECKPOINTS)
        except StorageError:
            checkpoints = []
        return max((int(path.name.partition("-")[0]) for path in checkpoints), default=-1)


class _TemplateProcess:
    """The process from which the ranks are forked."""

    def __init__(self, asked: Asked, board: RankBoard) -> None:
        program = [sys.executable, *(["-P"] if sys.flags.safe_path else []), "-m", _PROGRAM]
        self._channel, theirs = socket.socketpair()
        with theirs, os.fdopen(nameless_file("rlcore-asked"), "wb") as stream:
            pickle.dump(asked, stream)
            stream.flush()
            fds = (stream.fileno(), theirs.fileno(), *board.fds)
            self._process = subprocess.Popen(
                [*program, *map(str, fds)], pass_fds=fds, stdin=subprocess.DEVNULL, process_group=0
            )
        self._read = b""

    def answers(self, seconds: float) -> list[dict[str, Any]]:
        """Return what it answers within some time, or nothing; it may be gone."""
        if not select.select([self._channel], [], [], seconds)[0]:
            return []
        try:
            came = self._channel.recv(1 << 16)
        except ConnectionError:
            came = b""
        if not came:
            time.sleep(_LOOK / 10)
        *lines, self._read = (self._read + came).split(b"\n")
        return [json.loads(line) for line in lines]

    def say(self, command: dict[str, Any]) -> None:
        """Send a command; whether it is gone shows elsewhere."""
        try:
            self._channel.sendall((json.dumps(command) + "\n").encode())
        except OSError:
            return

    def code(self) -> int | None:
        """Return its exit code; None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """Kill it, and with it the ranks."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Let it end; it has nothing to finish."""
        self._channel.close()
        try:
            self._process.wait(_KILLING)
        except subprocess.TimeoutExpired:
            self.kill()
