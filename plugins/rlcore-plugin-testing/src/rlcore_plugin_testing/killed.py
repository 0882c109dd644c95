"""Runs whose process is killed within calls of functions, beside the same run without a kill."""

from __future__ import annotations

import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlcore_plugin_testing.resumed import differing_parts, newest
from rlcore_plugin_testing.small_run import make_run


def check_killed(folder: Path, sections: Mapping[str, Any], kills: Sequence[tuple[str, int]]) -> None:
    """Check that a small run ends in the same state, to the bit, however often it is killed and resumed.

    Args:
        folder: where run folders are made.
        sections: of its config, see `make_config`; of what JSON has.
        kills: for each process a function, and the call of it, from 1, that does not happen. A function is named by
            where its callers find it, `package.module:name` or `package.module:Class.name`.
    """
    whole = make_run(folder=folder / "whole", sections=sections).trainer
    whole.train()
    for number, (function, call) in enumerate(kills):
        plan = {"function": function, "call": call, "folder": str(folder / "killed"), "resume": number > 0}
        command = [sys.executable, "-m", __name__]
        text = json.dumps(plan | {"sections": sections})
        done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
        assert done.returncode == -signal.SIGKILL, f"call {call} of {function} did not come\n{done.stderr}"
    resumed = make_run(folder=folder / "killed", sections=sections, resume=True).trainer
    resumed.train()
    assert newest(resumed)["digest"] == newest(whole)["digest"], differing_parts(whole, resumed)


def _kill_at(function: str, call: int) -> None:
    """Let a call of a function kill the process."""
    place, name = re.fullmatch(r"(.*)[:.](\w+)", function).groups()  # type: ignore[union-attr]
    owner, calls = pkgutil.resolve_name(place), 0
    inner = getattr(owner, name)

    def counted(*arguments: Any, **keywords: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return inner(*arguments, **keywords)

    setattr(owner, name, counted)


def _train(plan: Mapping[str, Any]) -> None:
    """Train, or resume, as the plan of `check_killed` says."""
    _kill_at(plan["function"], plan["call"])
    make_run(folder=plan["folder"], sections=plan["sections"], resume=plan["resume"]).trainer.train()


if __name__ == "__main__":
    _train(json.load(sys.stdin))
