"""The machine and the packages that a row was made with."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

from rlcore.errors import ConfigError
from rlcore.process import usable_cores

_PROGRAM: Final = """
import importlib.metadata, json, platform, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        found[name] = ""
print(json.dumps({"python": platform.python_version(), **found}))
"""
# seconds for an interpreter to start, on a machine with much else to do
_PATIENCE: Final = 120


def machine() -> dict[str, Any]:
    """Return the name of the CPU, and how many cores this process may use."""
    return {"cpu": _cpu(), "cores": usable_cores()}


@cache
def _cpu() -> str:
    """Return the name of the CPU, or as much of it as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


@cache
def versions_of(python: str, packages: tuple[str, ...]) -> dict[str, str]:
    """Return the versions that an interpreter has of packages, and its own; empty text where one is missing.

    Raises:
        ConfigError: the interpreter cannot be run.
    """
    if python == sys.executable:
        return {"python": platform.python_version(), **{name: _version(name) for name in packages}}
    try:
        done = subprocess.run(
            [python, "-c", _PROGRAM, *packages], capture_output=True, text=True, timeout=_PATIENCE, check=True
        )
        return dict(json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise ConfigError(f"--python: {python!r} cannot be run: {error}") from error


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
