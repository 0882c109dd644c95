"""The queue: rows run as processes, several at once, each stored as soon as it is done."""

from __future__ import annotations

import json
import logging
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from rlcore.errors import ConfigError
from rlcore.files import Lock, in_use
from rlcore_plugin_bench import peer_row, rlcore_row
from rlcore_plugin_bench.identity import Identity, differences, identity_of
from rlcore_plugin_bench.machine import machine
from rlcore_plugin_bench.row import COMMAND, Row, portable
from rlcore_plugin_bench.stored_row import StoredRow, read_row, write_row
from rlcore_plugin_bench.texts import duration

log = logging.getLogger(__name__)

_POLL: Final = 0.1
_REMOVE_SECONDS: Final = 5.0
# how often a run that is killed without getting any further is resumed
_TRIES: Final = 3
# seconds that a run trains before its speed counts
_MEASURED: Final = 10.0
_IDENTITY: Final = "identity.json"
Again: TypeAlias = Literal["none", "stale", "all"]
# exit codes of a process that a signal ended, or that a signal stopped with its state saved
_BY_SIGNAL: Final = range(129, 144)


@dataclass
class Running:
    """A row that this queue has claimed.

    Attributes:
        row: the row.
        lock: keeps other queues from the row.
        process: None where a process of an earlier queue still works on it.
        began: when its process was started.
        printed_before: bytes in its log then.
        measured_from: when the speed began to be measured, and the frames then; None before the first frame.
        stopped: whether it was asked to stop, as it cannot finish in time.
    """

    row: Row
    lock: Lock
    process: subprocess.Popen[bytes] | None
    began: float
    printed_before: int = 0
    measured_from: tuple[float, int] | None = None
    from_frame: int = 0
    stopped: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether nobody works on it any more."""
        return not in_use(self.row.run) if self.process is None else self.process.poll() is not None

    def stop(self) -> None:
        """Ask it to save its state and end."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)


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
        self._deadline = None if max_time is None else time.monotonic() + max_time
        self._measured = _MEASURED if max_time is None else min(_MEASURED, max_time / 10)
        self._walls = dict(walls or {})
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
                self._look_at_clock()
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
        done = rlcore_row.is_done(row) if row.how.kind == "rlcore" else peer_row.is_done(row)
        begun = read_identity(row)
        same = begun is not None and not any(differences(begun.inputs, identity))
        if row.run.exists() and not same:
            log.info("%s: its run was begun with other settings; it starts over", row)
        if not same or (done and self._again == "all"):
            shutil.rmtree(row.run, ignore_errors=True)
            return False
        return done

    def _is_in_time(self, row: Row) -> bool:
        """Return whether a row would finish in time, as far as others of its method tell."""
        if self._deadline is None:
            return True
        left = self._deadline - time.monotonic()
        needs = self._walls.get((row.task, row.method))
        now, total = rlcore_row.reached(row) if row.how.kind == "rlcore" else (0, 0)
        if needs is not None and total:
            needs *= 1 - now / total
        if left > 0 and (needs is None or needs <= left):
            return True
        takes = "" if needs is None else f"needs about {duration(needs)}, and "
        self._late(row, f"not begun: {takes}{duration(max(left, 0))} are left")
        return False

    def _late(self, row: Row, why: str) -> None:
        self.outcome.late[str(row)] = why
        log.info("%s: %s", row, why)

    def _python(self, row: Row) -> str | None:
        return peer_row.interpreter(row, self._pythons)

    def _start(self, row: Row, lock: Lock, identity: Identity) -> None:
        (row.folder / _IDENTITY).write_text(json.dumps({"inputs": identity.inputs, "versions": identity.versions}))
        before = row.log.stat().st_size if row.log.exists() else 0
        environment = peer_row.threads()
        from_frame, resumed = 0, False
        if row.how.kind == "rlcore":
            resumed = rlcore_row.is_begun(row)
            from_frame = rlcore_row.saved(row) if resumed else 0
            process = rlcore_row.start(row, environment)
        else:
            python = self._python(row)
            assert python is not None
            process = peer_row.start(row, python, environment)
        self._running.append(Running(row, lock, process, time.monotonic(), before, from_frame=from_frame))
        log.info("%s: %s", row, f"resumed at {from_frame:,}" if resumed else "begun")

    def _ended(self, running: Running) -> None:
        """Store a row whose process ended well; go on with one that was killed."""
        row = running.row
        done = rlcore_row.is_done(row) if row.how.kind == "rlcore" else peer_row.is_done(row)
        code = None if running.process is None else running.process.poll()
        if done:
            self._store(row, running)
        elif running.stopped or self._stops:
            log.info("%s: stopped; the next run goes on with it", row)
        elif running.process is None or code is None or code < 0 or code in _BY_SIGNAL:
            self._go_on(running)
        else:
            pid = running.process.pid
            self._fail(
                row,
                rlcore_row.why_failed(row, pid, running.printed_before)
                if row.how.kind == "rlcore"
                else peer_row.why_failed(row),
            )
        running.lock.release()

    def _go_on(self, running: Running) -> None:
        """Run a row again whose process was killed, unless that happens without it getting any further."""
        row = running.row
        further = row.how.kind == "rlcore" and rlcore_row.saved(row) > running.from_frame
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
            stored = finished(row, running)
        except ConfigError as error:
            self._fail(row, str(error))
            return
        write_row(row.stored, stored)
        self.outcome.done.append(str(row))
        if stored.wall is not None:
            self._walls.setdefault((row.task, row.method), stored.wall)
        if self._discard:
            _remove(row.run)
        log.info("%s: %.1f", row, stored.score)

    def _look_at_clock(self) -> None:
        """Stop what cannot finish in time, by the speed that it has."""
        if self._deadline is None:
            return
        now = time.monotonic()
        for running in self._running:
            if running.stopped:
                continue
            needs = self._needs(running, now)
            if now >= self._deadline or (needs is not None and now + needs > self._deadline):
                running.stopped = True
                running.stop()
                left = max(0.0, self._deadline - now)
                takes = "" if needs is None else f"needs about {duration(needs)} more, and "
                self._late(running.row, f"stopped: {takes}{duration(left)} are left; a later run resumes it")

    def _needs(self, running: Running, now: float) -> float | None:
        """Return the seconds that a run still needs at the speed so far; None before that is measured."""
        if running.row.how.kind != "rlcore":
            return None
        at, total = rlcore_row.reached(running.row)
        if running.measured_from is None:
            if at > running.from_frame:
                running.measured_from = now, at
            return None
        since, first = running.measured_from
        if now - since < self._measured or at <= first or not total:
            return None
        seconds = (total - at) * (now - since) / (at - first)
        whole = total * (now - since) / (at - first)
        self._walls.setdefault((running.row.task, running.row.method), whole)
        return seconds


def _remove(folder: Path) -> None:
    """Remove the folder of a run whose process has just ended; its companion may still look at the lock in it."""
    deadline = time.monotonic() + _REMOVE_SECONDS
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(_POLL)


def finished(row: Row, running: Running | None) -> StoredRow:
    """Return the row that a finished run amounts to.

    Raises:
        ConfigError: the run recorded nothing to score it by.
    """
    result: dict[str, Any] = rlcore_row.result_of(row) if row.how.kind == "rlcore" else peer_row.result_of(row)
    identity = read_identity(row)
    if identity is None:
        raise ConfigError(f"{row}: nobody noted what its run was begun with; remove {row.folder}, and run it again")
    command = json.loads((row.folder / COMMAND).read_text())
    wall = peer_row.wall_of(row) if row.how.kind == "peer" else None
    if wall is None and running is not None and running.process is not None and not running.from_frame:
        wall = round(time.monotonic() - running.began, 1)
    return StoredRow(
        task=row.task,
        method=row.method,
        seed=row.seed,
        wall=wall,
        identity=identity.hash,
        inputs=identity.inputs,
        command=portable(command),
        versions=identity.versions,
        machine={**machine(), "threads": identity.inputs.get("config.run.threads", 1)},
        **result,
    )


def read_identity(row: Row) -> Identity | None:
    """Return what the run of a row was begun with; None where nobody noted it."""
    try:
        return Identity(**json.loads((row.folder / _IDENTITY).read_text()))
    except (OSError, ValueError, TypeError):
        return None
