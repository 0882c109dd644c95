"""What the tools of the server do in one folder: call `rlcore` as a process, and train in the background."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from rlcore.errors import RlcoreError
from rlcore.run_folder import CONFIG_FILE, read_status

LOG: Final = "assistant.log"
# of a command that computes for as long as its config says; the others take seconds
_MOST_SECONDS: Final = 600.0
_STOP_SECONDS: Final = 30.0
_COMMAND: Final = (sys.executable, "-m", "rlcore.cli.command_line")


class WorkshopError(RlcoreError):
    """A tool cannot do what it was asked; says why, in the words of the command where there is one."""

    exit_code = 2


class Workshop:
    """One folder with configs and runs. No path of a tool leads out of it.

    Args:
        folder: absolute.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._trainings: dict[str, subprocess.Popen[bytes]] = {}

    def call(self, *arguments: str) -> dict[str, Any]:
        """Return the data that an `rlcore` command answers with.

        Raises:
            WorkshopError: the command failed; holds its exit code and what it said.
        """
        words = [*arguments]
        words.insert(words.index("--") if "--" in words else len(words), "--json")
        try:
            done = subprocess.run(
                [*_COMMAND, *words],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_MOST_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise WorkshopError(f"rlcore {arguments[0]} took over {_MOST_SECONDS:.0f} s and was ended") from error
        try:
            document = json.loads(done.stdout)
        except ValueError as error:  # it was killed
            raise WorkshopError(f"exit code {done.returncode}: {done.stderr.strip()}") from error
        if document["error"] is not None:
            raise WorkshopError(f"exit code {done.returncode}: {document['error']['message']}")
        if done.returncode:
            raise WorkshopError(f"exit code {done.returncode}: {done.stderr.strip() or document['data']}")
        data: dict[str, Any] = document["data"]
        return data

    def path(self, name: str) -> str:
        """Return a path below the folder, relative to it.

        Raises:
            WorkshopError: it leads out of the folder, or would be read as an option.
        """
        path = (self._folder / name).resolve()
        if not path.is_relative_to(self._folder):
            raise WorkshopError(f"{name!r} is outside of the folder that is served")
        inside = str(path.relative_to(self._folder))
        return f"./{inside}" if inside.startswith("-") else inside

    def train(self, config: str, overrides: list[str], resume: bool) -> dict[str, Any]:
        """Begin a training in the background; return where the run and its output are.

        Raises:
            WorkshopError: the config has problems, or the run trains already.
        """
        file = self.path(config)
        sets = [f"--set={override}" for override in overrides]
        run = self._run_of(file, sets)
        training = self._trainings.get(run)
        if training is not None and training.poll() is None:
            raise WorkshopError(f"{run} trains already, process {training.pid}")
        if not resume and (self._folder / run).exists():
            raise WorkshopError(f"{run} exists already; resume it, or give it another name by run.name=NAME")
        log = self._folder / f"{Path(run).name}-{LOG}"
        with log.open("ab") as output:
            self._trainings[run] = subprocess.Popen(
                [*_COMMAND, "train", file, *sets, *(["--resume"] if resume else [])],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C of the assistant's terminal is not for the training
            )
        return {"run": run, "output": log.name, "pid": self._trainings[run].pid}

    def status(self, run: str) -> dict[str, Any]:
        """Return the status of a run, and of its process where this server began it.

        Raises:
            WorkshopError: there is no such run.
        """
        folder = self.path(run)
        training = self._trainings.get(folder)
        if training is None and not (self._folder / folder / CONFIG_FILE).is_file():
            raise WorkshopError(f"{run!r} is not a run folder; the tool runs lists those that are there")
        status = dict(read_status(self._folder / folder))
        if training is not None:
            status["exit_code"] = training.poll()
            log = self._folder / f"{Path(folder).name}-{LOG}"
            status["last_output"] = log.read_text(encoding="utf-8", errors="replace")[-2_000:]
        return status

    def stop(self, run: str) -> dict[str, Any]:
        """Let a training save its state and end; return its status.

        Raises:
            WorkshopError: this server trains no such run.
        """
        folder = self.path(run)
        training = self._trainings.get(folder)
        if training is None or training.poll() is not None:
            raise WorkshopError(f"{run!r} is not training here; the tool status says what became of it")
        self._end(training)
        return self.status(folder)

    def close(self) -> None:
        """Let all trainings save their states and end."""
        for training in self._trainings.values():
            if training.poll() is None:
                training.send_signal(signal.SIGTERM)
        for training in self._trainings.values():
            self._end(training)

    def _run_of(self, config: str, sets: list[str]) -> str:
        """Return the folder of the run that a config describes, once nothing is wrong with the config."""
        self.call("config", "check", config, *sets)
        run = self.call("config", "show", config, *sets)["config"]["run"]
        return self.path(f"{run['folder']}/{run['name']}")

    @staticmethod
    def _end(training: subprocess.Popen[bytes]) -> None:
        if training.poll() is None:
            training.send_signal(signal.SIGTERM)
        try:
            training.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:  # its own grace is over long since: the latest checkpoint stands
            training.kill()
            training.wait()
