"""A process that has everything imported and forks itself for each command line: a start takes milliseconds.

It reads requests from its standard input, one JSON per line, and answers on its standard output.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import sys
import traceback
from collections.abc import Iterable
from typing import Any, Final

PROGRAM: Final = "rlcore.cli.command_line"
# imports that every run makes; a request can name more
COMMON: Final = ("torch", "tensordict", "numpy", "gymnasium", "rlcore.cli.train_alone")


def serve() -> None:
    """Answer requests until the input ends.

    A request `{"imports": [...]}` imports modules, and is answered when that is done. Any other is a command line:
    `{"arguments": [...], "output": FILE, "errors": FILE, "directory": PATH, "environment": {...}}`, answered with the
    child's process id, and with its exit code when it ended; minus the signal's number when it was killed.
    """
    answers = os.dup(1)
    os.dup2(2, 1)  # what an import prints is no answer
    _import(COMMON)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "imports" in request:
            _import(request["imports"])
            _answer(answers, {"imported": len(sys.modules)})
            continue
        gc.freeze()
        child = os.fork()
        if child == 0:
            os.close(answers)
            _become(request)
        _answer(answers, {"pid": child})
        _, status = os.waitpid(child, 0)
        _answer(answers, {"code": os.waitstatus_to_exitcode(status)})


def _import(names: Iterable[str]) -> None:
    """Import what can be imported; the command line itself is run again each time."""
    for name in names:
        if name != PROGRAM and name not in sys.modules:
            try:
                importlib.import_module(name)
            except Exception:  # a module that a plugin made up, or one for another system
                continue


def _answer(descriptor: int, content: dict[str, Any]) -> None:
    os.write(descriptor, (json.dumps(content) + "\n").encode())


def _become(request: dict[str, Any]) -> None:
    """Run a command line in this forked process, and end it."""
    code = 1
    try:
        files = [os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) for name in ("output", "errors")]
        for there, here in enumerate([os.open(os.devnull, os.O_RDONLY), *files]):
            os.dup2(here, there)
            os.close(here)
        os.environ.update(request["environment"])
        os.chdir(request["directory"])
        sys.argv = [PROGRAM, *request["arguments"]]
        runpy.run_module(PROGRAM, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        if modules := request.get("modules"):
            with open(modules, "w") as stream:
                json.dump(sorted(sys.modules), stream)
        os._exit(code)
