"""A plugin module imports only what is light, so that listing plugins stays fast. Importable without pytest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from typing import Final

# What a plugin module may import besides the standard library and its own package.
LIGHT: Final = ("rlcore", "pluggy", "packaging")

# Runs in a fresh interpreter. The finder sees a name before the module is imported, so it also finds out by whom.
_PROBE: Final = """
import importlib, sys
module, allowed = sys.argv[1], set(sys.argv[2].split(","))
before = set(sys.modules)
culprits = {}

class Watch:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        frame = sys._getframe(1)
        while "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        importer = frame.f_globals.get("__name__", "?").partition(".")[0]
        culprits.setdefault(top, (importer, f"{frame.f_code.co_filename}:{frame.f_lineno}"))

sys.meta_path.insert(0, Watch())
importlib.import_module(module)
tops = {name.partition(".")[0] for name in set(sys.modules) - before}
heavy = {top for top in tops - set(sys.stdlib_module_names) - allowed if not top.startswith("_")}
direct = {top: where for top, (importer, where) in culprits.items() if top in heavy and importer not in heavy}
sys.stdout.write("\\n".join(f"{top} (imported at {where})" for top, where in direct.items()))
"""


def heavy_imports(module: str, allow: Iterable[str] = ()) -> list[str]:
    """Return what importing `module` in a fresh interpreter pulls in that is not light, and where.

    Light is the standard library, the module's own package, and `LIGHT`; torch, tensordict, gymnasium, matplotlib and
    every other third-party package is not.

    Args:
        module: what the entry point names.
        allow: further top-level packages that may be imported.

    Raises:
        AssertionError: the import failed.
    """
    own = module.partition(".")[0]
    allowed = ",".join((own, *LIGHT, *allow))
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, module, allowed], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, f"import {module} fails in a fresh interpreter:\n{done.stderr}"
    return done.stdout.splitlines()


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
