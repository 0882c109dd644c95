"""What the buttons do: each is a command that the page shows before and after it ran."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rlcore_plugin_reports import RunFiles, checkpoint_rows

from rlcore.errors import ConfigError, StorageError
from rlcore.files import LOCK_FILE, Lock, in_use, read_plain
from rlcore.process import companion
from rlcore.run_folder import CHECKPOINTS, CONFIG_FILE, reached_by
from rlcore_plugin_console.catalogue import Catalogue
from rlcore_plugin_console.jobs import Jobs

_FORK_SECONDS: Final = 300.0
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=+-]{0,99}")
_WINDOWS: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?|.*\.", re.IGNORECASE)
_KEY: Final = re.compile(r"[A-Za-z_][\w-]*(\.[\w-]+)+", re.ASCII)
_MOST_CHANGES: Final = 50
_MOST_TOTAL: Final = 10**15


class ActionError(ConfigError):
    """A button cannot do what was asked; says why."""


@dataclass(frozen=True)
class Plan:
    """What a button would do.

    Attributes:
        commands: as somebody would type them, one after another.
        do: does it, and returns a sentence about it.
    """

    commands: Sequence[str]
    do: Callable[[], str]


class Actions:
    """What can be done with the runs of a catalogue.

    Args:
        catalogue: which has the runs.
        jobs: which trains.
        place: working directory of the commands; paths are shown relative to it.
    """

    def __init__(self, catalogue: Catalogue, jobs: Jobs, place: Path) -> None:
        self._catalogue = catalogue
        self._jobs = jobs
        self._place = place
        self._plans: Mapping[str, Callable[[Mapping[str, Any]], Plan]] = {
            "stop": self._stop,
            "resume": self._resume,
            "longer": self._longer,
            "fork": self._fork,
            "again": self._again,
            "delete": self._delete,
            "forget": self._forget,
        }

    def plan(self, asked: Mapping[str, Any]) -> Plan:
        """Return what would be done.

        Args:
            asked: `action`, `run`, and what the action takes.

        Raises:
            ActionError: it cannot be done, or something of it is missing.
            UnknownRunError: there is no such run.
        """
        action = _text(asked, "action")
        if action not in self._plans:
            raise ActionError(f"there is no action {action[:40]!r}")
        return self._plans[action](asked)

    def _stop(self, asked: Mapping[str, Any]) -> Plan:
        name, run = self._run(asked)
        pid = _trainer_of(run.folder)

        def stop() -> str:
            if _trainer_of(run.folder) != pid:
                raise ActionError(f"{name} is trained by another process by now")
            os.kill(pid, signal.SIGTERM)
            return f"{name} finishes its iteration, saves a checkpoint and ends"

        return Plan([f"kill -TERM {pid}"], stop)

    def _resume(self, asked: Mapping[str, Any]) -> Plan:
        name, run = self._resumable(asked)
        accept = ["--accept-changes"] if asked.get("accept") is True else []
        return self._training(name, run.folder, [f"--resume={self._shown(run.folder)}", *accept], asked)

    def _longer(self, asked: Mapping[str, Any]) -> Plan:
        name, run = self._resumable(asked)
        total, reached = asked.get("total"), reached_by(run.status)
        if type(total) is not int or not reached < total <= _MOST_TOTAL:
            raise ActionError(f"{name} is at {reached:,} {run.clock}; name a larger number of them")
        arguments = [f"--resume={self._shown(run.folder)}", f"--set=run.total_{run.clock}={total}"]
        return self._training(name, run.folder, arguments, asked)

    def _fork(self, asked: Mapping[str, Any]) -> Plan:
        name, run = self._run(asked)
        folder, new = self._new(name, asked)
        chosen = _text(asked, "checkpoint")
        if chosen not in {row["name"] for row in checkpoint_rows([run])}:
            raise ActionError(f"{name} has no such checkpoint any more")
        copy = ["fork", self._shown(run.folder / CHECKPOINTS / chosen), self._shown(folder)]
        sets = [f"--set=run.name={folder.name}", *_changes(asked)]
        train = self._training(new, folder, [f"--resume={self._shown(folder)}", *sets, "--accept-changes"], asked)

        def fork() -> str:
            self._call(["config", "check", self._shown(run.folder / CONFIG_FILE), *sets])
            self._call(copy)
            return train.do()

        return Plan([_typed(copy), *train.commands], fork)

    def _again(self, asked: Mapping[str, Any]) -> Plan:
        name, run = self._run(asked)
        folder, new = self._new(name, asked)
        sets = [f"--set=run.name={folder.name}", f"--set=run.folder={self._shown(folder.parent)}", *_changes(asked)]
        config = self._shown(run.folder / CONFIG_FILE)
        train = self._training(new, folder, [config, *sets], asked)

        def again() -> str:
            # a wrong key is said now, and not when its turn has come
            self._call(["config", "check", config, *sets])
            return train.do()

        return Plan(train.commands, again)

    def _delete(self, asked: Mapping[str, Any]) -> Plan:
        name, run = self._run(asked)
        if in_use(run.folder) is True:
            raise ActionError(f"{name} is in use by a process; stop it first")

        def delete() -> str:
            if _text(asked, "typed") != name:
                raise ActionError(f"type the name of the run, {name}, to delete it")
            return _removed(name, run.folder)

        return Plan([_typed_words(["rm", "-r", "--", self._shown(run.folder)])], delete)

    def _forget(self, asked: Mapping[str, Any]) -> Plan:
        number = asked.get("job")
        if type(number) is not int:
            raise ActionError("which one is to leave the line is not said")
        return Plan([], lambda: f"{self._jobs.forget(number).run} waits no more")

    def _training(self, name: str, folder: Path, arguments: Sequence[str], asked: Mapping[str, Any]) -> Plan:
        wait = asked.get("wait") is True
        whole = ["train", *arguments]
        command = _typed(whole)

        def train() -> str:
            job = self._jobs.add(name, folder, whole, command, wait)
            return f"{name} {'waits in line' if job.process is None else f'trains, process {job.process.pid}'}"

        return Plan([command], train)

    def _run(self, asked: Mapping[str, Any]) -> tuple[str, RunFiles]:
        name = _text(asked, "run")
        return name, RunFiles(self._catalogue.folder_of(name))

    def _resumable(self, asked: Mapping[str, Any]) -> tuple[str, RunFiles]:
        name, run = self._run(asked)
        if in_use(run.folder) is True:
            raise ActionError(f"{name} is in use by a process already")
        return name, run

    def _new(self, name: str, asked: Mapping[str, Any]) -> tuple[Path, str]:
        """Return folder and name of a run beside another.

        Raises:
            ActionError: the name is none for a folder everywhere, or there is such a folder.
        """
        new = _text(asked, "name")
        if not _NAME.fullmatch(new) or _WINDOWS.fullmatch(new):
            raise ActionError("a name is of letters, digits and _ . = + -, and begins with a letter, a digit or _")
        folder = self._catalogue.folder_of(name).with_name(new)
        if folder.exists() or folder.is_symlink():
            raise ActionError(f"there is something of the name {new} already")
        return folder, folder.relative_to(self._catalogue.folder).as_posix()

    def _shown(self, path: Path) -> str:
        """Return a path as the commands take it: relative where that is short, and never like an option."""
        if not path.is_relative_to(self._place):
            return str(path)
        relative = str(path.relative_to(self._place))
        return f"./{relative}" if relative.startswith("-") else relative

    def _call(self, arguments: Sequence[str]) -> None:
        """Run a command that ends soon.

        Raises:
            ActionError: it failed; says what it said.
        """
        try:
            done = subprocess.run(
                [*companion.rlcore_command(), *arguments],
                cwd=self._place,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_FORK_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ActionError(f"rlcore {arguments[0]} took over {_FORK_SECONDS:.0f} s and was ended") from error
        if done.returncode:
            raise ActionError(done.stderr.strip() or f"rlcore {arguments[0]} ended with exit code {done.returncode}")


def _trainer_of(folder: Path) -> int:
    """Return the number of the process that holds the lock of a run folder.

    Raises:
        ActionError: none does, or it is on another machine.
    """
    if in_use(folder) is not True:
        raise ActionError(f"no process trains in {folder.name}")
    try:
        host, _, number = read_plain(folder / LOCK_FILE, 1000).decode("utf-8", "replace").strip().partition(" ")
    except (OSError, StorageError) as error:
        raise ActionError(f"the lock of {folder.name} cannot be read: {error}") from error
    if host != socket.gethostname() or not number.isdecimal() or not 1 < int(number) < 2**31:
        raise ActionError(f"{folder.name} is trained on {host[:100]}, not on this machine; stop it there")
    return int(number)


def _removed(name: str, folder: Path) -> str:
    """Remove a run folder, out of sight at once, unless a process trains in it."""
    try:
        lock = Lock(folder)
    except ConfigError as error:
        raise ActionError(str(error)) from error
    gone = folder.with_name(f".{secrets.token_hex(6)}.deleted")
    try:
        folder.rename(gone)
        shutil.rmtree(gone)  # which follows no links
    except OSError as error:
        raise ActionError(f"{name} is not removed as a whole: {error}; the rest of it is in {gone.name}") from error
    finally:
        lock.release()
    return f"{name} is deleted"


def _changes(asked: Mapping[str, Any]) -> list[str]:
    """Return the flags for keys that are to differ.

    Raises:
        ActionError: one is no key, or no value.
    """
    changes = asked.get("changes", [])
    if not isinstance(changes, list) or len(changes) > _MOST_CHANGES:
        raise ActionError(f"changes are a list of up to {_MOST_CHANGES} pairs of key and value")
    flags = []
    for change in changes:
        match change:
            case [str(key), str(value)] if _KEY.fullmatch(key) and value.isprintable() and len(value) <= 1000:
                flags.append(f"--set={key}={value}")
            case _:
                raise ActionError(f"{str(change)[:100]} is no key such as optimizer.0.lr with a value in one line")
    return flags


def _text(asked: Mapping[str, Any], key: str) -> str:
    value = asked.get(key)
    if not isinstance(value, str) or not value:
        raise ActionError(f"{key} is missing")
    return value


def _typed(arguments: Sequence[str]) -> str:
    """Return a call of `rlcore` as somebody would type it."""
    return _typed_words(["rlcore", *arguments])


def _typed_words(words: Sequence[str]) -> str:
    return " ".join(shlex.quote(word) if word.isprintable() else shlex.quote(ascii(word)) for word in words)
