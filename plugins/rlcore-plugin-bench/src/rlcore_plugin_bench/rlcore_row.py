"""A row of rlcore: its config, its process, and what its run folder says when it is done."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import rlcore
from rlcore.errors import ConfigError, RlcoreError
from rlcore.process import start_run
from rlcore.run import Config
from rlcore.run_folder import last_words, reached_by, read_status
from rlcore_plugin_bench.bench_file import Task
from rlcore_plugin_bench.hook import CURVE, PROGRESS
from rlcore_plugin_bench.row import COMMAND, Row, place_of
from rlcore_plugin_bench.stored_row import Curve

RESUMABLE: Final = ("stopped-resumable", "failed-resumable")
_Points: TypeAlias = list[tuple[int, float, float | None]]


def config_of(row: Row) -> Config:
    """Return the config of a row.

    Raises:
        ConfigError: it does not fit; names the row.
    """
    try:
        if row.how.preset is not None:
            from rlcore_plugin_presets.config_text import as_raw

            raw = as_raw(_preset_text(row), row.file.path)
            return rlcore.load_config(dict(raw.values), _overrides(row))
        assert row.how.config is not None
        return rlcore.load_config(place_of(row.file, row.how.config), _overrides(row))
    except RlcoreError as error:
        raise ConfigError(f"{row}: {error}") from error


def _preset_text(row: Row) -> str:
    from rlcore_plugin_presets.config_text import filled
    from rlcore_plugin_presets.presets import named

    assert row.how.preset is not None
    presets = named(row.how.preset)
    fitting = [preset for preset in presets if row.how.env is None or preset.is_for(row.how.env)] or presets
    if len(fitting) > 1:
        names = ", ".join(preset.name for preset in fitting)
        raise ConfigError(f"preset = {row.how.preset!r} is several: {names}; name one of them")
    return filled(fitting[0], "run", row.how.env)


def _overrides(row: Row) -> list[str]:
    return [*(row.filled(text) for text in row.how.set), f"run.seed={row.seed}"]


def command_of(row: Row) -> list[str]:
    """Return the arguments after `rlcore` that begin the run of a row."""
    if row.how.preset is not None:
        config = row.folder / "preset.toml"  # not the name by which a folder is known as a run
        config.write_text(_preset_text(row))
    else:
        assert row.how.config is not None
        config = place_of(row.file, row.how.config)
    hook = f"hook.{_hooks(row)}"
    task = row.of_task
    window = [f"{hook}.episodes={task.averaged}"] if task.score == "training" else []
    changes = [
        *_overrides(row),
        "run.name=run",
        f"run.folder={row.folder}",
        f"{hook}.use=bench:learning-curve",
        *window,
    ]
    return ["train", str(config), *(f"--set={text}" for text in changes)]


def _hooks(row: Row) -> int:
    return len(config_of(row).raw.values.get("hook", []))


def start(row: Row, python: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Begin the run of a row, or go on with it from its latest checkpoint; without any it starts over.

    It runs by the interpreter of this process, which `python` names.
    """
    if is_begun(row):
        arguments = ["train", "--resume", str(row.run)]
        # the process that is gone may have been further than its checkpoint
        (row.run / PROGRESS).unlink(missing_ok=True)
    else:
        shutil.rmtree(row.run, ignore_errors=True)
        arguments = command_of(row)
        (row.folder / COMMAND).write_text(json.dumps(["rlcore", *arguments]))
    with row.log.open("ab") as log:
        log.write(f"\n$ rlcore {shlex.join(arguments)}\n".encode())
        log.flush()
        return start_run([*arguments, "--quiet"], log, environment)


def is_begun(row: Row) -> bool:
    """Return whether a run has a checkpoint that it can go on from."""
    return read_status(row.run).get("state") in RESUMABLE


def is_done(row: Row) -> bool:
    """Return whether a run came to its end."""
    return read_status(row.run).get("state") == "done"


def why_failed(row: Row, pid: int, printed_before: int) -> str:
    """Return why a run failed, as far as it said so."""
    return last_words(row.log, printed_before, row.run, pid) or "its process ended without a word"


def reached(row: Row) -> tuple[int, int]:
    """Return how far a run is, and how far it goes; zeros where it does not say."""
    try:
        note = json.loads((row.run / PROGRESS).read_text())
        return max(int(note["now"]), saved(row)), int(note["total"])
    except (OSError, ValueError, KeyError, TypeError):
        return saved(row), 0


def saved(row: Row) -> int:
    """Return how far the latest checkpoint of a run is."""
    return reached_by(read_status(row.run))


def wall_of(row: Row) -> float | None:
    """Return None: a run does not note the seconds that its processes took."""
    return None


def result_of(row: Row) -> dict[str, Any]:
    """Return score, frames, clock, seconds and curve of a run that is done.

    Raises:
        ConfigError: it recorded no curve, or nothing of what the task is scored by.
    """
    try:
        recorded = json.loads((row.run / CURVE).read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{row}: its run recorded no curve: {error}") from error
    task = row.of_task
    points: _Points = recorded["training" if task.score == "training" else "evaluations"]
    if not points:
        needed = (
            "no episode ended" if task.score == "training" else "nothing was evaluated; its config needs an [evaluator]"
        )
        raise ConfigError(f"{row}: {needed}")
    ats, returns, seconds = (list(column) for column in zip(*points, strict=True))
    return {
        "score": score_of(task, returns),
        "frames": recorded["now"],
        "clock": recorded["clock"],
        "seconds": round(recorded["seconds"], 1),
        "curve": Curve(ats, returns, [None if each is None else round(each, 1) for each in seconds]),
    }


def score_of(task: Task, returns: list[float]) -> float:
    """Return the score: of training the last point, which is a mean already; else the mean of the last evaluations."""
    counted = returns[-1:] if task.score == "training" else returns[-task.averaged :]
    return float(sum(counted) / len(counted))
