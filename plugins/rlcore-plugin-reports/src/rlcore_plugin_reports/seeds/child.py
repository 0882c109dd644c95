"""One run in a process of its own: started, asked how far it is, told to stop; what it prints goes into a file."""

from __future__ import annotations

import csv
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Final

from rlcore.errors import StorageError
from rlcore.files import plain_file
from rlcore.process import how_it_ended, start_run
from rlcore.run_folder import last_words, reached_by, read_status
from rlcore_plugin_reports.seeds.plan import Seed
from rlcore_plugin_reports.tables import EVALUATIONS

LOG_FILE: Final = "output.log"
# from the end of a table: more than its last rows need
_TAIL_BYTES: Final = 4096


class Child:
    """A run, from before it is started until its process has ended.

    Args:
        seed: which run.
        arguments: returns those of `rlcore`, for this run; asked when it is started.
        environment: of the process.

    Attributes:
        seed: which run.
        code: exit code; None while its process runs, or before it does.
        frames: how far it was when its files were last asked, on the clock of the run.
        score: the mean return of the latest evaluation that its files told of; None without one.
        asked: whether it was told to stop from here.
    """

    def __init__(self, seed: Seed, arguments: Callable[[], Sequence[str]], environment: Mapping[str, str]) -> None:
        self.seed = seed
        self.code: int | None = None
        self.frames = 0
        self.score: float | None = None
        self.asked = False
        self._arguments = arguments
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._printed_before = 0  # bytes in the log when the process was started
        self._log = seed.folder.with_name(f"{seed.folder.name}.log")

    @property
    def running(self) -> bool:
        """Whether its process was started and has not ended."""
        return self._process is not None and self.code is None

    @property
    def log(self) -> Path:
        """What it prints: in its run folder as soon as that is there."""
        inside = self.seed.folder / LOG_FILE
        return inside if inside.exists() else self._log

    def start(self) -> None:
        """Start the process.

        Raises:
            StorageError: its log cannot be written.
        """
        place = self.seed.folder / LOG_FILE if self.seed.goes_on else self._log
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("ab") as log:
                self._printed_before = log.tell()
                self._process = start_run(self._arguments(), log, self._environment)
        except OSError as error:
            raise StorageError(f"seed {self.seed.number} cannot be started with its log in {place}: {error}") from error

    def look(self) -> None:
        """See whether the process has ended, and how far the run is."""
        if self._process is None or self.code is not None:
            return
        self.code = self._process.poll()
        if self.seed.folder.is_dir() and self._log.exists():
            with suppress(OSError):
                self._log.rename(self.seed.folder / LOG_FILE)
        self.read_files()

    def read_files(self) -> None:
        """Read from the tables and the status of the run how far it is."""
        folder = self.seed.folder
        evaluations = _last_rows(folder / EVALUATIONS)
        said = [
            rows[-1].get("frames", rows[-1].get("updates"))
            for rows in (_last_rows(folder / "metrics.csv"), evaluations)
            if rows
        ]
        frames = [int(text) for text in said if text and text.isdecimal()]
        self.frames = max(self.frames, reached_by(read_status(folder)), *frames, 0)
        with suppress(KeyError, TypeError, ValueError):  # nothing was evaluated, or somebody else wrote there
            latest = [float(row["return"]) for row in evaluations if next(iter(row.values())) == said[-1]]
            self.score = sum(latest) / len(latest) if latest else None

    def send(self, number: int) -> None:
        """Send a signal to the process."""
        if self._process is not None and self.code is None:
            self.asked = True
            self._process.send_signal(number)  # nothing, where it has ended meanwhile

    def last_line(self) -> str:
        """Return why its process failed, as far as it said so."""
        pid = None if self._process is None else self._process.pid
        return last_words(self.log, self._printed_before, self.seed.folder, pid)

    def how_it_ended(self) -> str:
        """Return what an exit code says, where there is no better word."""
        return how_it_ended(0 if self.code is None else self.code)


def _last_rows(table: Path) -> list[dict[str, str]]:
    """Return the last rows of a table, as far as they can be read."""
    try:
        with plain_file(table) as stream:
            header = stream.readline().decode(errors="replace")
            size = stream.seek(0, os.SEEK_END)
            begin = max(len(header.encode()), size - _TAIL_BYTES)
            stream.seek(begin - 1)
            tail = stream.read().decode(errors="replace").partition("\n")[2]  # without the end of the row before
    except (OSError, StorageError):
        return []
    complete = tail[: tail.rfind("\n") + 1]
    return list(csv.DictReader(StringIO(header + complete)))
