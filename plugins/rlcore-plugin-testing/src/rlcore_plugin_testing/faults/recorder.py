"""Judges from outside whether two runs are equal: one line of hashes per iteration, in a file that no resume cuts.

It knows nothing of checkpoints: what it hashes is what goes through the hooks, and the parameters of the model.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.errors import ConfigError, StorageError
from rlcore.hooks.specs import hookimpl
from rlcore.types.context import Context
from rlcore.types.models import part_of

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import EvaluationResult
    from rlcore.types.trainer import Trainer

OBSERVATIONS: Final = ("observation",)
ACTIONS: Final = ("action",)


class Recorder:
    """Appends a line per iteration and per evaluation to a file. Takes no random numbers and changes nothing.

    Attributes:
        observer: True; it watches a run.
        ranks: "first"; a recording is of one process.
    """

    observer: Final = True
    ranks: Final = "first"

    class Config(BaseModel, extra="forbid"):
        """Where to write."""

        path: Path = Field(description="file for the lines, outside the run folder")
        times: Path | None = Field(None, description="file for the seconds that each save took")

    def __init__(self, config: Config, context: Context) -> None:
        folder = context.run.folder
        for path in (config.path, config.times):
            if folder is not None and path is not None and path.resolve().is_relative_to(folder.resolve()):
                raise ConfigError(
                    f"[hook] {context.name}: {str(path)!r} is inside the run folder {str(folder)!r}, where a resume "
                    "could cut it; name a file elsewhere"
                )
        self._path, self._times = config.path, config.times
        if folder is not None:  # this process has the run for itself
            _cut_torn_line(config.path)
            _cut_torn_line(config.times)
        self._batch: dict[str, str] = {}
        self._updates = hashlib.sha256()
        self._ended = time.monotonic()

    @hookimpl
    def pre_steps_log(self, batch: TensorDict | None) -> None:
        """Hash the batch as the buffer will get it; of a run that collects nothing there is none."""
        leaves: dict[str, Tensor] = {}
        if batch is not None:
            leaves = {_name(key): value for key, value in batch.items(include_nested=True, leaves_only=True)}
        groups: dict[str, dict[str, Tensor]] = {"observations": {}, "actions": {}, "rewards": {}}
        for name, value in leaves.items():
            groups[_group(name)][name] = value
        self._batch = {group: _hash(values) for group, values in groups.items()}
        self._updates = hashlib.sha256()

    @hookimpl
    def post_optim_log(self, metrics: Mapping[str, Tensor]) -> None:
        """Take the metrics of an update in."""
        self._updates.update(_hash(metrics).encode())

    @hookimpl
    def evaluation(self, result: EvaluationResult, trainer: Trainer) -> None:
        """Write the line of an evaluation."""
        values = {"seeds": result.seeds, "returns": result.returns, "lengths": result.lengths}
        evaluation = _hash({name: np.asarray(value) for name, value in values.items()})
        self._write(self._path, {**_clock(trainer), "evaluation": evaluation})

    @hookimpl
    def post_steps_log(self, trainer: Trainer) -> None:
        """Write the line of the iteration."""
        line = {
            **_clock(trainer),
            **self._batch,
            "updates": self._updates.hexdigest(),
            "parameters": _hash(_parameters(trainer.model)),
        }
        self._write(self._path, line)
        self._ended = time.monotonic()

    @hookimpl
    def checkpoint_saved(self, path: Path, trainer: Trainer) -> None:
        """Write what is saved, and how long the save took, from the end of the iteration on."""
        if self._times is not None:
            seconds = {"saving": time.monotonic() - self._ended, "training": trainer.seconds_trained}
            self._write(self._times, {"frames": int(path.name.partition("-")[0]), **seconds})

    @staticmethod
    def _write(path: Path, line: Mapping[str, Any]) -> None:
        """Append in one call to the system: what is written is there whatever happens to the process next.

        A call is torn where a line goes over the end of a page: a reader may see the first part alone, and a SIGKILL
        there leaves nothing else.
        """
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, (json.dumps(line) + "\n").encode())
        finally:
            os.close(descriptor)


@dataclass(frozen=True)
class Difference:
    """A line that is not as in the reference.

    Attributes:
        frames: of the line; of a run that is counted in updates, those.
        what: which hashes differ, in the order in which an iteration makes them; or that the line is missing.
        number: of the line in the recorded file, from 1; 0 for one that is missing.
        unit: what is counted: `frame` or `update`.
    """

    frames: int
    what: tuple[str, ...]
    number: int = 0
    unit: str = "frame"

    def __str__(self) -> str:
        line = f" (line {self.number})" if self.number else ""
        return f"{self.unit} {self.frames:,}: {', '.join(self.what)}{line}"


@dataclass(frozen=True)
class Comparison:
    """What a comparison found.

    Attributes:
        lines: how many lines were compared.
        repeated: how many iterations were recorded more than once.
        differences: in the order of the file, then those that are missing.
    """

    lines: int
    repeated: int
    differences: tuple[Difference, ...]

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def read(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a recording; one without an end is being written, or its process was killed.

    Raises:
        StorageError: the file is missing, or a line of it is damaged.
    """
    try:
        return [json.loads(line) for line in path.read_text().split("\n")[:-1]]
    except (OSError, ValueError) as error:
        raise StorageError(f"recording {path} cannot be read: {error}; record the run again") from error


def compare(reference: Path, recorded: Path) -> Comparison:
    """Compare a recording with that of an uninterrupted run.

    Every recorded line must equal the line of its frame, also where an iteration was repeated; none may be missing.

    Raises:
        StorageError: a file is missing, or a line of it is damaged.
    """
    wanted = {_place(line): line for line in read(reference)}
    lines = read(recorded)
    found = [
        Difference(line["frames"], what, number, line["unit"])
        for number, line in enumerate(lines, start=1)
        if (what := _differing(wanted.get(_place(line)), line))
    ]
    places = [_place(line) for line in lines]
    missing = [
        Difference(place[1], (f"no {place[0]}",), unit=line["unit"])
        for place, line in wanted.items()
        if place not in places
    ]
    iterations = [place for place in places if place[0] == "iteration"]
    return Comparison(len(lines), len(iterations) - len(set(iterations)), (*found, *missing))


def iterations(path: Path) -> list[int]:
    """Return where every recorded iteration ended, on the clock of the run, in the order in which they were trained."""
    return [line["frames"] for line in read(path) if "evaluation" not in line] if path.exists() else []


def _clock(trainer: Trainer) -> dict[str, Any]:
    return {"frames": trainer.progress.now, "unit": trainer.progress.unit}


def _cut_torn_line(path: Path | None) -> None:
    """Take the line away that a process was killed in, so that the next one does not go on with it."""
    if path is not None and path.exists():
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)


def _place(line: Mapping[str, Any]) -> tuple[str, int]:
    return "evaluation" if "evaluation" in line else "iteration", line["frames"]


def _differing(wanted: Mapping[str, Any] | None, line: Mapping[str, Any]) -> tuple[str, ...]:
    if wanted is None:
        return (f"{_place(line)[0]} that the reference has not",)
    return tuple(name for name in dict.fromkeys((*wanted, *line)) if wanted.get(name) != line.get(name))


def _name(key: str | Iterable[str]) -> str:
    return key if isinstance(key, str) else "/".join(key)


def _group(name: str) -> str:
    last = name.rpartition("/")[2]
    if last in OBSERVATIONS:
        return "observations"
    return "actions" if last in ACTIONS or name == "sample_log_prob" else "rewards"


def _parameters(model: Any) -> Mapping[str, Tensor]:
    """Return parameters and buffers of whatever the model is made of."""
    if isinstance(model, torch.nn.Module):
        return {**dict(model.named_parameters()), **dict(model.named_buffers())}
    modules = {name: part_of(model, name) for name in model.parts()}
    return {
        f"{part}.{name}": value
        for part, module in modules.items()
        if isinstance(module, torch.nn.Module)
        for name, value in module.named_parameters()
    }


def _hash(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of named tensors, arrays or numbers: names, types, shapes and bytes."""
    digest = hashlib.sha256()
    for name in sorted(values):
        value = values[name]
        if isinstance(value, Tensor):
            plain = value.detach().cpu().contiguous()
            head, content = f"{plain.dtype} {list(plain.shape)}", plain.reshape(-1).view(torch.uint8).numpy()
        else:
            plain_array = np.ascontiguousarray(value)
            head, content = f"{plain_array.dtype} {list(plain_array.shape)}", plain_array.reshape(-1).view(np.uint8)
        digest.update(f"{name} {head};".encode())
        digest.update(content.data)
    return digest.hexdigest()
