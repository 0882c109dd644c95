"""A row: one method with one seed on one task, with the config or command that it stands for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rlcore_plugin_bench.bench_file import BenchFile, Method, Task

# in the folder of a row: how its run was begun
COMMAND: Final = "command.json"


@dataclass(frozen=True)
class Row:
    """One method with one seed on one task.

    Attributes:
        file: the bench file.
        task: name of the task.
        method: name of the method.
        seed: of the run.
        how: the method, as the task has it.
    """

    file: BenchFile
    task: str
    method: str
    seed: int
    how: Method

    def __str__(self) -> str:
        return f"{self.task}/{self.method}/{self.seed}"

    @property
    def of_task(self) -> Task:
        """The task, as the file has it."""
        return self.file.task[self.task]

    @property
    def stored(self) -> Path:
        """The file of the finished row."""
        return self.file.folder / self.file.bench.rows / self.task / self.method / f"seed-{self.seed}.json.gz"

    @property
    def folder(self) -> Path:
        """The folder of the row while it is worked on: its log, and its run folder."""
        return self.file.bench.runs / self.file.path.stem / self.task / self.method / f"seed-{self.seed}"

    @property
    def run(self) -> Path:
        """The run folder; of a peer, the folder that its command works in."""
        return self.folder / "run"

    @property
    def log(self) -> Path:
        """The file with what its processes print."""
        return self.folder / "log"

    @property
    def data(self) -> Path | None:
        """The dataset that it learns from."""
        return None if self.of_task.data is None else place_of(self.file, self.of_task.data)

    def filled(self, text: str) -> str:
        """Return a text of the bench file with its placeholders filled in."""
        values = {
            "task": self.task,
            "method": self.method,
            "seed": str(self.seed),
            "here": os.path.abspath(self.file.folder),
            "data": "" if self.data is None else os.path.abspath(self.data),
            "folder": os.path.abspath(self.run),
        }
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", value)
        return text


def place_of(file: BenchFile, path: Path) -> Path:
    """Return where a path of a bench file is, as short as it can be written."""
    return Path(os.path.normpath(file.folder / path))


def rows_of(file: BenchFile, tasks: Sequence[str] | None = None) -> Iterator[Row]:
    """Yield the rows of a file that are run, in the order in which they are run: the sides in turn, seed by seed."""
    for task in tasks or file.task:
        methods = {name: how for name, how in file.methods_of(task) if how.kind != "published"}
        seeds = {name: file.seeds_of(task, how) for name, how in methods.items()}
        for seed in dict.fromkeys(seed for each in seeds.values() for seed in each):
            for name, how in methods.items():
                if seed in seeds[name]:
                    yield Row(file, task, name, seed, how)


def portable(command: Sequence[str]) -> list[str]:
    """Return a command without paths of this machine: relative to the working directory, a program by its name."""
    here = f"{Path.cwd()}{os.sep}"
    program, *arguments = (part.replace(here, "") for part in command)
    return [Path(program).name if Path(program).is_absolute() else program, *arguments]
