"""A plugin module imports only what is light, so that listing plugins stays fast. Importable without pytest."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

# What a plugin module may import besides the standard library and its own package.
LIGHT: Final = ("rlcore", "pluggy", "packaging")
# for one import, which is given up then
SECONDS: Final = 120

# Runs in a fresh interpreter and forks one process for each module, so that none hides or breaks another's import. The
# finder sees a name before the module is imported, so it also finds out by whom. What a module prints goes to stderr.
_PROBE: Final = """
import importlib, json, os, signal, sys, time, traceback
seconds, first, light = int(sys.argv[1]), sys.argv[2].split(), set(sys.argv[3].split())
for module in first:
    importlib.import_module(module)
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

class Watch:
    def __init__(self):
        self.culprits = {}

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        frame = sys._getframe(1)
        while "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        importer = frame.f_globals.get("__name__", "?").partition(".")[0]
        self.culprits.setdefault(top, (importer, f"{frame.f_code.co_filename}:{frame.f_lineno}"))

def import_it(module):
    allowed = {*sys.stdlib_module_names, *light, module.partition(".")[0]}
    before, watch = set(sys.modules), Watch()
    sys.meta_path.insert(0, watch)
    began = time.perf_counter()
    importlib.import_module(module)
    took = time.perf_counter() - began
    tops = {name.partition(".")[0] for name in set(sys.modules) - before}
    heavy = {top for top in tops - allowed if not top.startswith("_")}
    direct = {top: place for top, (by, place) in watch.culprits.items() if top in heavy and by not in heavy}
    answer(seconds=took, heavy=[f"{top} (imported at {place})" for top, place in direct.items()])

def answer(seconds=0.0, heavy=(), error=""):
    print(json.dumps({"seconds": seconds, "heavy": heavy, "error": error}), file=answers, flush=True)

for module in sys.argv[4:]:
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        try:
            import_it(module)
        except BaseException as error:
            traceback.print_exc()
            answer(error=traceback.format_exception_only(error)[-1].strip())
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        answer(error=f"its process ended with {os.waitstatus_to_exitcode(status)}")
"""


@dataclass(frozen=True)
class Imported:
    """How a module is imported into a fresh interpreter.

    Attributes:
        seconds: that it takes.
        heavy: what it pulls in that is not light, and where.
        error: last line of what it raised; empty where it can be imported.
        printed: what all modules of the interpreter printed, tracebacks included.
    """

    seconds: float
    heavy: list[str]
    error: str
    printed: str


def import_alone(modules: Iterable[str], allow: Iterable[str] = (), first: Iterable[str] = ()) -> list[Imported]:
    """Import each module in a process of its own, which a fresh interpreter forks; return how, in their order.

    Light is the standard library, the module's own package, and `LIGHT`; torch, tensordict, gymnasium, matplotlib and
    every other third-party package is not.

    Args:
        modules: what entry points name.
        allow: further top-level packages that may be imported.
        first: modules that are imported before, and count for none.
    """
    words = [str(SECONDS), " ".join(first), " ".join((*LIGHT, *allow)), *modules]
    done = subprocess.run([sys.executable, "-c", _PROBE, *words], capture_output=True, text=True, check=True)
    return [Imported(**json.loads(line), printed=done.stderr) for line in done.stdout.splitlines()]


def heavy_imports(module: str, allow: Iterable[str] = ()) -> list[str]:
    """Return what importing `module` in a fresh interpreter pulls in that is not light, and where; see `import_alone`.

    Args:
        module: what the entry point names.
        allow: further top-level packages that may be imported.

    Raises:
        AssertionError: the import failed.
    """
    (imported,) = import_alone([module], allow)
    assert not imported.error, f"import {module} fails in a fresh interpreter:\n{imported.printed or imported.error}"
    return imported.heavy


def check_light_import(module: str, allow: Iterable[str] = ()) -> None:
    """Import `module` in a fresh interpreter and see that it pulls in nothing heavy.

    Light is the standard library, the module's own package, rlcore, pluggy and packaging; no other package is.

    Args:
        module: what the entry point names.
        allow: further top-level packages that may be imported.

    Raises:
        AssertionError: something heavy was imported, or the import failed; says where and what to change.
    """
    heavy = heavy_imports(module, allow)
    assert not heavy, (
        f"import {module} also imports\n  "
        + "\n  ".join(heavy)
        + "\nA plugin module is imported to list it, so it must be light: keep only provide_components there, name "
        'each component by import string ("package.module:Name"), and import heavy packages in that module.'
    )
