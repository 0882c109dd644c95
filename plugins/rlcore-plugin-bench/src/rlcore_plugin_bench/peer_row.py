"""A row of a peer: its process, and what its command printed when it is done."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rlcore.errors import ConfigError
from rlcore_plugin_bench.peer_program import EXIT, OUTPUT
from rlcore_plugin_bench.row import COMMAND, Row, place_of
from rlcore_plugin_bench.stored_row import Curve

# what is not said of the run: it is of the row already
_OF_ROW: Final = ("peer", "task", "workload", "seed", "threads", "curve", "frames", "clock", "train_s")


def command_of(row: Row, python: str) -> list[str]:
    """Return the command of a row."""
    assert row.how.command is not None
    script, *arguments = (row.filled(part) for part in row.how.command)
    return [python, str(place_of(row.file, Path(script))), *arguments]


def start(row: Row, python: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Begin the command of a row, in a process that holds the row and notes how the command ends.

    It starts over, in the folder that an earlier one left: a script that goes on from what it saved finds that in
    `{folder}`.
    """
    row.run.mkdir(parents=True, exist_ok=True)
    for name in (EXIT, OUTPUT):
        (row.run / name).unlink(missing_ok=True)
    command = command_of(row, python)
    (row.folder / COMMAND).write_text(json.dumps(command))
    with row.log.open("ab") as log:
        log.write(f"\n$ {shlex.join(command)}\n".encode())
        log.flush()
        return subprocess.Popen(
            [sys.executable, "-m", "rlcore_plugin_bench.peer_program", str(row.run), *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )


def is_done(row: Row) -> bool:
    """Return whether the command came to its end with exit code 0."""
    return bool(_exit(row).get("code") == 0)


def is_begun(row: Row) -> bool:
    """Return False: a command is begun again from the start, whatever its script saved."""
    return False


def saved(row: Row) -> int:
    """Return 0: a command says nothing of checkpoints."""
    return 0


def reached(row: Row) -> tuple[int, int]:
    """Return zeros: a command does not say how far it is."""
    return 0, 0


def why_failed(row: Row, pid: int, printed_before: int) -> str:
    """Return the exit code of the command, and the last line that it printed."""
    code = _exit(row).get("code")
    lines = [line for line in row.log.read_text(errors="replace").splitlines() if line.strip()]
    how = "was killed" if code is None else f"ended with {code}"
    return f"its command {how}: {lines[-1][:500] if lines else 'it printed nothing'}"


def result_of(row: Row) -> dict[str, Any]:
    """Return score, frames, clock, seconds and curve, as the last line says that the command printed.

    Raises:
        ConfigError: the line is no JSON of a mapping, or the score is not in it.
    """
    printed = (row.run / OUTPUT).read_text(errors="replace").strip().splitlines()
    try:
        values = json.loads(printed[-1])
        score = float(values[row.how.result])
    except (IndexError, ValueError, TypeError, KeyError):
        last = printed[-1][:200] if printed else ""
        raise ConfigError(
            f"{row}: the last line of its command is to be JSON with the key {row.how.result!r}, and is {last!r}"
        ) from None
    return {
        "score": score,
        "frames": values.get("frames"),
        "clock": values.get("clock", "frames"),
        "seconds": values.get("train_s"),
        "curve": _curve(row, values.get("curve")),
        "also": {key: value for key, value in values.items() if key not in (*_OF_ROW, row.how.result)},
    }


def _curve(row: Row, values: Any) -> Curve | None:
    """Return the curve that a command printed.

    Raises:
        ConfigError: it is none.
    """
    if values is None:
        return None
    try:
        ats, returns = [int(at) for at in values["at"]], [float(value) for value in values["return"]]
        seconds = [None if each is None else float(each) for each in values.get("seconds", [None] * len(ats))]
        if not len(ats) == len(returns) == len(seconds) or sorted(set(ats)) != ats:
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ConfigError(
            f"{row}: `curve` of its command is to have the lists `at`, which goes up, `return` and `seconds`, of one "
            "length"
        ) from None
    return Curve(ats, returns, seconds)


def wall_of(row: Row) -> float | None:
    """Return the seconds that the command took."""
    seconds = _exit(row).get("seconds")
    return None if seconds is None else float(seconds)


def _exit(row: Row) -> dict[str, Any]:
    try:
        return dict(json.loads((row.run / EXIT).read_text()))
    except (OSError, ValueError):
        return {}


def interpreter(row: Row, pythons: Mapping[str, str]) -> str | None:
    """Return the interpreter of a row; None where `--python` does not name it."""
    return pythons.get(row.how.python) if row.how.python else sys.executable


def threads(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a run with one thread for each library that starts some."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")
    return {**(os.environ if environment is None else environment), **one}
