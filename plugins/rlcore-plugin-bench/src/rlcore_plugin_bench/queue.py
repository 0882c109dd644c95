"""The queue: rows run as processes, several at once, each stored as soon as it is done."""

from __future__ import annotations

import logging
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from rlcore.errors import ConfigError
from rlcore.files import Lock, in_use
from rlcore_plugin_bench import peer_row
from rlcore_plugin_bench.finishing import finished, note_identity, noted_identity
from rlcore_plugin_bench.forecast import Forecast
from rlcore_plugin_bench.identity import Identity, differences, identity_of
from rlcore_plugin_bench.row import Row
from rlcore_plugin_bench.running import Running
from rlcore_plugin_bench.sides import side_of
from rlcore_plugin_bench.stored_row import read_row, write_row

log = logging.getLogger(__name__)

_POLL: Final = 0.1
_REMOVE_SECONDS: Final = 5.0
# how often a run that is killed without getting any further is resumed
_TRIES: Final = 3
Again: TypeAlias = Literal["none", "stale", "all"]
# exit codes of a process that a signal ended, or that a signal stopped with its state saved
_BY_SIGNAL: Final = range(129, 144)


@dataclass
class Outcome:
    """What became of the rows of a queue, by name.

    Attributes:
        done: finished and stored.
        failed: with the reason.
        late: not begun or stopped, as they would not have finished in time.
        elsewhere: another queue has them.
    """

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    late: dict[str, str] = field(default_factory=dict)
    elsewhere: list[str] = field(default_factory=list)


class Queue:
    """Runs rows.

    Args:
        rows: in the order in which they begin.
        pythons: interpreters of peers, by name.
        jobs: how many run at once.
        stops: signals that asked for a stop; more may come.
        max_time: seconds after which nothing runs any more; None for no limit.
        again: which finished rows run again: those that are stale, or all.
        discard: whether the run folder of a row is removed when the row is stored.
        walls: seconds that rows of a task and method took, where some are finished.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        pythons: Mapping[str, str],
        jobs: int,
        stops: Sequence[int] = (),
        max_time: float | None = None,
        again: Again = "none",
        discard: bool = False,
        walls: Mapping[tuple[str, str], float] | None = None,
    ) -> None:
        self._pythons, self._jobs, self._stops = pythons, jobs, stops
        self._waiting = list(rows)
        self._again, self._discard = again, discard
        self._forecast = Forecast(max_time, walls or {})
        self._made = time.time()
        self._running: list[Running] = []
        self._idle: Counter[str] = Counter()
        self._passed_on = 0
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """Run until every row is done, failed, late or elsewhere, or a signal asks for a stop."""
        try:
            while self._fill() or self._running:
                time.sleep(_POLL)
                for running in [running for running in self._running if running.has_ended]:
                    self._running.remove(running)
                    self._ended(running)
                self._stop_late()
                for _ in self._stops[self._passed_on :]:
                    self._passed_on += 1
                    self._stop_all()
        except BaseException:
            self._stop_all()
            raise
        return self.outcome

    def _stop_all(self) -> None:
        for running in self._running:
            running.stop()

    def _fill(self) -> bool:
        """Begin or resume rows while there is room; return whether any can begin later."""
        while len(self._running) < self._jobs:
            if self._stops or not self._waiting:
                return False
            self._take(self._waiting.pop(0))
        return bool(self._waiting) and not self._stops

    def _take(self, row: Row) -> None:
        """Claim a row and start it, unless another queue has it, it is done, or it would not be in time."""
        lock = self._claimed(row)
        if lock is None:
            return
        # looked at with the lock held: another queue may have finished it meanwhile
        if not self._is_wanted(row) or not self._is_in_time(row):
            lock.release()
            return
        if in_use(row.run):
            log.info("%s: is still trained by a process of an earlier queue; waiting for it", row)
            self._running.append(Running(row, lock, None, time.monotonic()))
            return
        identity = identity_of(row, self._python(row))
        if self._is_finished(row, identity):
            self._store(row, None)
            lock.release()
        else:
            self._start(row, lock, identity)

    def _claimed(self, row: Row) -> Lock | None:
        row.folder.mkdir(parents=True, exist_ok=True)
        if in_use(row.folder):
            self._leave(row)
            return None
        try:
            return Lock(row.folder)
        except ConfigError:  # another queue was faster
            self._leave(row)
            return None

    def _leave(self, row: Row) -> None:
        log.info("%s: another queue has it", row)
        self.outcome.elsewhere.append(str(row))

    def _is_wanted(self, row: Row) -> bool:
        stored = read_row(row.stored)
        if stored is None:
            return True
        if self._again == "stale":
            return any(differences(stored.inputs, identity_of(row, self._python(row))))
        # another queue may have repeated it since
        return self._again == "all" and row.stored.stat().st_mtime < self._made

    def _is_finished(self, row: Row, identity: Identity) -> bool:
        """Return whether an earlier queue was killed between the end of a run and its row."""
        done, begun = side_of(row).is_done(row), noted_identity(row)
        same = begun is not None and not any(differences(begun.inputs, identity))
        if row.run.exists() and not same:
            log.info("%s: its run was begun with other settings; it starts over", row)
        if not same or (done and self._again == "all"):
            shutil.rmtree(row.run, ignore_errors=True)
            return False
        return done

    def _is_in_time(self, row: Row) -> bool:
        if why := self._forecast.why_not_begun(row):
            self._late(row, why)
        return why is None

    def _late(self, row: Row, why: str) -> None:
        self.outcome.late[str(row)] = why
        log.info("%s: %s", row, why)

    def _python(self, row: Row) -> str | None:
        return peer_row.interpreter(row, self._pythons)

    def _start(self, row: Row, lock: Lock, identity: Identity) -> None:
        note_identity(row, identity)
        before = row.log.stat().st_size if row.log.exists() else 0
        side, python = side_of(row), self._python(row)
        assert python is not None
        resumed = side.is_begun(row)
        from_frame = side.saved(row) if resumed else 0
        process = side.start(row, python, peer_row.threads())
        self._running.append(Running(row, lock, process, time.monotonic(), before, from_frame))
        log.info("%s: %s", row, f"resumed at {from_frame:,}" if resumed else "begun")

    def _ended(self, running: Running) -> None:
        """Store a row whose process ended well; go on with one that was killed."""
        row, process = running.row, running.process
        code = None if process is None else process.poll()
        if side_of(row).is_done(row):
            self._store(row, running)
        elif running.stopped or self._stops:
            log.info("%s: stopped; the next run goes on with it", row)
        elif process is None or code is None or code < 0 or code in _BY_SIGNAL:
            self._go_on(running)
        else:
            self._fail(row, side_of(row).why_failed(row, process.pid, running.printed_before))
        running.lock.release()

    def _go_on(self, running: Running) -> None:
        """Run a row again whose process was killed, unless that happens without it getting any further."""
        row = running.row
        further = side_of(row).saved(row) > running.from_frame
        self._idle[str(row)] = 0 if further else self._idle[str(row)] + 1
        if self._idle[str(row)] >= _TRIES:
            self._fail(row, f"its process was killed {_TRIES} times without getting any further")
        else:
            log.info("%s: its process was killed; going on", row)
            self._waiting.insert(0, row)

    def _fail(self, row: Row, why: str) -> None:
        self.outcome.failed[str(row)] = why
        log.info("%s: failed: %s", row, why)

    def _store(self, row: Row, running: Running | None) -> None:
        try:
            stored = finished(row, None if running is None else running.watched)
        except ConfigError as error:
            self._fail(row, str(error))
            return
        earlier = read_row(row.stored)
        write_row(row.stored, stored)
        self.outcome.done.append(str(row))
        if stored.wall is not None:
            self._forecast.note(row, stored.wall)
        if self._discard:
            _remove(row.run)
        log.info("%s: %.1f%s", row, stored.score, "" if earlier is None else f"; it was {earlier.score:.1f}")

    def _stop_late(self) -> None:
        """Stop what cannot finish in time."""
        for running in self._running:
            if not running.stopped and (why := self._forecast.why_stopped(running)):
                running.stopped = True
                running.stop()
                self._late(running.row, why)


def _remove(folder: Path) -> None:
    """Remove the folder of a run whose process has just ended; its companion may still look at the lock in it."""
    deadline = time.monotonic() + _REMOVE_SECONDS
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(_POLL)
