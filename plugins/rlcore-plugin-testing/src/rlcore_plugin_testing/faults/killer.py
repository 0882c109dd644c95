"""Starts training as a user does, and kills it at chosen moments.

A moment is a time, a loop point, or a file event: a file opened for writing, a rename, a removal, an fsync.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from pydantic import BaseModel, Field

from rlcore.errors import RlcoreError
from rlcore.hooks.specs import hookimpl
from rlcore.types.context import Context
from rlcore_plugin_testing.faults.template import PROGRAM

EVENTS: Final = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "os.symlink")
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


@dataclass(frozen=True)
class Strike:
    """When a signal is sent, and which. Exactly one of the moments is set.

    Attributes:
        at: seconds from the start of the process.
        after: seconds from the end of the first iteration of the process.
        point: a loop point, at its call number `count` in the process.
        event: number of the file event inside the run folder, from 1, that the process does not get to.
        only: count only file events of this name.
        count: see `point`.
        number: of the signal; 0 raises an error instead.
    """

    at: float | None = None
    after: float | None = None
    point: str | None = None
    event: int | None = None
    only: str = ""
    count: int = 1
    number: int = signal.SIGKILL

    def __str__(self) -> str:
        moments = {"at": self.at, "after": self.after, "point": self.point, "event": self.event}
        name, value = next((name, value) for name, value in moments.items() if value is not None)
        shown = f"{value:.3f} s" if isinstance(value, float) else value
        return f"{signal.Signals(self.number).name if self.number else 'error'} {name} {shown}" + (
            f" #{self.count}" if self.point else ""
        )


class Killer:
    """A hook that sends its own process a signal, as a plan file says; the plan is used up by reading it.

    Without a plan it does nothing, so that it can be in the config of a run and of all its resumes.

    Attributes:
        observer: True; it leaves alone what is trained.
        ranks: "first"; a plan is for one process.
    """

    observer: Final = True
    ranks: Final = "first"

    class Config(BaseModel, extra="forbid"):
        """Where the plan is."""

        plan: Path = Field(description="JSON file with a strike; used up by reading it")
        events: Path | None = Field(None, description="file for the names of all file events inside the run folder")

    def __init__(self, config: Config, context: Context) -> None:
        self._plan: dict[str, Any] = {}
        self._counts: dict[str, int] = {}
        if config.plan.exists():
            self._plan = json.loads(config.plan.read_text())
            config.plan.unlink()
        folder = context.run.folder
        if folder is not None and (self._plan.get("event") or config.events):
            _FileEvents(folder, self._plan, self._strike, config.events)

    def _strike(self) -> None:
        if not self._plan["number"]:
            raise RuntimeError("on purpose")
        os.kill(os.getpid(), self._plan["number"])

    def _at(self, point: str) -> None:
        self._counts[point] = self._counts.get(point, 0) + 1
        if self._plan.get("point") == point and self._counts[point] == self._plan["count"]:
            self._strike()

    @hookimpl
    def setup(self) -> None:
        """Before the first frame."""
        self._at("setup")

    @hookimpl
    def pre_steps_log(self) -> None:
        """After collecting."""
        self._at("pre_steps_log")

    @hookimpl
    def post_optim(self) -> None:
        """In the middle of updating."""
        self._at("post_optim")

    @hookimpl
    def evaluation(self) -> None:
        """While evaluating."""
        self._at("evaluation")

    @hookimpl
    def post_steps_log(self) -> None:
        """While logging."""
        self._at("post_steps_log")

    @hookimpl
    def checkpoint_saved(self) -> None:
        """While saving, after the commit."""
        self._at("checkpoint_saved")

    @hookimpl
    def shutdown(self) -> None:
        """At the end."""
        self._at("shutdown")


class _FileEvents:
    """Counts what this process does to the files of a folder, before it is done."""

    def __init__(self, folder: Path, plan: Mapping[str, Any], strike: Callable[[], None], log: Path | None) -> None:
        self._folder = os.path.abspath(folder)
        self._last, self._only, self._strike = plan.get("event"), plan.get("only"), strike
        self._count = 0
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644) if log else None
        sync = os.fsync

        def counted(descriptor: Any) -> None:  # no audit event is raised for it
            self._take("fsync", "")
            sync(descriptor)

        os.fsync = counted  # type: ignore[assignment]
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITING and isinstance(path, str | os.PathLike):
                self._take(event, os.path.abspath(path))
        elif event in EVENTS:
            path, inside = arguments[0], arguments[-1] not in (-1, None) and event in ("os.remove", "os.rmdir")
            if isinstance(path, str | os.PathLike):
                self._take(event, self._folder if inside else os.path.abspath(path))

    def _take(self, event: str, path: str) -> None:
        if path and not path.startswith(self._folder):
            return
        if self._log is not None:
            os.write(self._log, f"{event} {path.removeprefix(self._folder)}\n".encode())
        if not self._only or event == self._only:
            self._count += 1
            if self._count == self._last:
                self._strike()


class Process:
    """A command line that runs.

    Attributes:
        pid: of the process.
        output: file with what it prints.
        errors: file with what it prints as errors; the same unless they are told apart.
    """

    def __init__(
        self, output: Path, errors: Path, popen: subprocess.Popen[bytes] | None, template: Launcher | None, pid: int
    ) -> None:
        self.output, self.errors, self.pid = output, errors, pid
        self._popen, self._template = popen, template
        self._code: int | None = None

    def wait(self, seconds: float) -> int | None:
        """Return the exit code, or None when the process still runs after that time."""
        if self._code is None and self._popen is not None:
            try:
                self._code = self._popen.wait(seconds)
            except subprocess.TimeoutExpired:
                return None
        elif self._code is None and self._template is not None:
            answer = self._template.answer(seconds)
            self._code = None if answer is None else int(answer["code"])
        return self._code

    def send(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self._code is None:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return

    def text(self) -> str:
        """Return what the process printed."""
        return self.output.read_text(errors="replace") if self.output.exists() else ""


class Launcher:
    """Starts command lines of rlcore, forked from one process that has everything imported where the system can fork.

    Args:
        directory: working directory of the processes.
        scratch: folder for what they print.
        environment: variables that are set for them.
    """

    def __init__(self, directory: Path, scratch: Path, environment: Mapping[str, str] | None = None) -> None:
        self._directory, self._scratch = directory, scratch
        self._environment = {"OMP_NUM_THREADS": "1", **(environment or {})}
        self._template: subprocess.Popen[bytes] | None = None
        self._rest = b""
        self._number = 0
        scratch.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        if sys.platform != "win32":  # which has no forks
            command = [sys.executable, "-c", "from rlcore_plugin_testing.faults.template import serve; serve()"]
            self._template = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=self._directory,
                env={**os.environ, **self._environment},
            )
        return self

    def __exit__(self, *error: object) -> None:
        if self._template is not None:
            assert self._template.stdin is not None
            assert self._template.stdout is not None
            self._template.stdin.close()
            try:
                self._template.wait(10)
            except subprocess.TimeoutExpired:
                self._template.kill()
                self._template.wait()
            self._template.stdout.close()

    def learn(self, arguments: Sequence[str]) -> Process:
        """Run a command line to its end, and import what it imported, so that the next ones need not."""
        modules = self._scratch / "modules.json"
        process = self.start(arguments, modules=modules)
        if process.wait(300) == 0 and self._template is not None and modules.exists():
            self._ask({"imports": json.loads(modules.read_text())})
            self.answer(300)
        return process

    def start(
        self,
        arguments: Sequence[str],
        hash_seed: int | None = None,
        modules: Path | None = None,
        *,
        directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
        errors_apart: bool = False,
    ) -> Process:
        """Start a command line. One of those that are forked runs at a time.

        Args:
            arguments: after `rlcore`.
            hash_seed: start a fresh interpreter with this `PYTHONHASHSEED`.
            modules: file for the names of the modules that were imported.
            directory: its working directory; that of the launcher if None.
            environment: variables that are set for it alone.
            errors_apart: whether what it prints as errors has a file of its own.
        """
        self._number += 1
        output = self._scratch / f"output-{self._number:04d}.txt"
        errors = output.with_suffix(".errors.txt") if errors_apart else output
        directory, environment = directory or self._directory, {**self._environment, **(environment or {})}
        if hash_seed is None and self._template is not None:
            request = {
                "arguments": list(arguments),
                "output": str(output),
                "errors": str(errors),
                "directory": str(directory),
                "environment": environment,
                "modules": str(modules) if modules else None,
            }
            self._ask(request)
            answer = self.answer(300)
            assert answer is not None
            return Process(output, errors, None, self, int(answer["pid"]))
        seed = {} if hash_seed is None else {"PYTHONHASHSEED": str(hash_seed)}
        with output.open("ab") as stream, errors.open("ab") as error_stream:
            popen = subprocess.Popen(
                [sys.executable, "-m", PROGRAM, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=error_stream,
                cwd=directory,
                env={**os.environ, **environment, **seed},
            )
        return Process(output, errors, popen, None, popen.pid)

    def answer(self, seconds: float) -> dict[str, Any] | None:
        """Return the next answer of the template, or None when there is none within that time."""
        assert self._template is not None
        assert self._template.stdout is not None
        deadline = time.monotonic() + seconds
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._template.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            received = os.read(self._template.stdout.fileno(), 4096)
            if not received:
                raise RlcoreError("the process that starts others has ended; what it printed is above")
            self._rest += received
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)  # type: ignore[no-any-return]

    def _ask(self, request: Mapping[str, Any]) -> None:
        assert self._template is not None
        assert self._template.stdin is not None
        self._template.stdin.write((json.dumps(request) + "\n").encode())
        self._template.stdin.flush()
