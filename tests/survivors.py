"""Which public functions could return None without any test noticing?

    python tests/survivors.py                        every row of TARGETS
    python tests/survivors.py rlcore.hooks.operations             the rows that name this module

For each public function and method of a module, its tests run once with the body replaced by `return None`, each time
in a process of its own. The names for which every test passes are printed: they are not tested. A body that does
nothing in the first place is left out.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import os
import pkgutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
# modules or packages, and where their tests are
TARGETS: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    (
        ("rlcore.scripts.trainer", "rlcore.hooks.operations", "rlcore.scripts.parts", "rlcore.adapters"),
        ("tests/trainer",),
    ),
    (("rlcore.scripts.factory", "rlcore.assembly.assembly"), ("tests/trainer",)),
    (("rlcore.collectors.episodes",), ("tests/unit/collectors/test_episodes.py",)),
    (("rlcore.learners.gradient_step",), ("tests/unit/learners/test_gradient_step.py",)),
    (
        ("rlcore.stock",),
        ("tests/stock", "tests/unit/stock/test_objects.py", "tests/contract/test_components.py", "tests/trainer"),
    ),
    (("rlcore.helpers",), ("tests/helpers",)),
    (
        ("rlcore.envs.checks", "rlcore.envs.rollout"),
        ("tests/unit/envs/test_checks.py", "tests/unit/envs/test_rollout.py"),
    ),
    (
        ("rlcore.spooling.spool", "rlcore.spooling.sender", "rlcore.spooling.running", "rlcore.spooling.logger"),
        ("tests/unit/spooling/test_logger.py",),
    ),
    (
        (
            "rlcore.loggers.writer",
            "rlcore.loggers.calls",
            "rlcore.loggers.room",
            "rlcore.loggers.standing",
            "rlcore.loggers.values",
            "rlcore.loggers.base",
            "rlcore.loggers.media",
            "rlcore.loggers",
        ),
        (
            *(
                "tests/unit/loggers/test_logger_parts.py",
                "tests/unit/loggers/test_by_name.py",
                "tests/unit/loggers/test_writer.py",
            ),
            *("plugins/rlcore-plugin-csv/tests", "tests/trainer/test_loop.py"),
        ),
    ),
    (("rlcore.state.memory", "rlcore.checkpoints.tensor_files"), ("tests/unit/state/test_memory.py",)),
    (("rlcore.checkpoints.convert", "rlcore.checkpoints.migrations"), ("tests/integration/test_convert.py",)),
    (
        ("rlcore.reports.page", "rlcore.reports.svg"),
        ("tests/unit/reports/test_svg.py", "tests/integration/test_report.py"),
    ),
    (("rlcore.restore.optimizers", "rlcore.restore.dependents"), ("tests/unit/restore/test_optimizers.py",)),
    (("rlcore.state.sources",), ("tests/unit/state/test_sources.py", "tests/faults/test_c_sources.py")),
    (("rlcore.state.tree", "rlcore.state.kinds"), ("tests/unit/state/test_tree.py",)),
    (
        ("rlcore.learners.torch_private",),
        ("tests/unit/learners/test_gradient_step.py", "tests/unit/learners/test_gradient.py"),
    ),
    (
        ("rlcore.envs.step_checks", "rlcore.envs.space_watch", "rlcore.envs.action_check"),
        ("tests/faults/test_f_wrong_steps.py",),
    ),
    (
        ("rlcore.training.entries", "rlcore.config.build_problems"),
        ("tests/faults/test_i_entries.py", "tests/faults/test_i_all_at_once.py"),
    ),
    (
        ("rlcore.files.growing", "rlcore.files.log_files", "rlcore.files.table", "rlcore.training.evaluations"),
        ("tests/faults/test_e_logs.py", "tests/unit/envs/test_evaluator.py"),
    ),
    (
        (
            "rlcore.run_folder.origin",
            "rlcore.run_folder.run_id",
            "rlcore.run_folder.next_config",
            "rlcore.config.changes",
        ),
        ("tests/faults/test_c_bound_resume.py", "tests/unit/restore/test_components.py"),
    ),
    (("rlcore.files.plain_files",), ("tests/unit/files/test_inside.py", "tests/faults/test_j_folders.py")),
    (
        (
            "rlcore.run_folder.trust",
            "rlcore.reports.run_files",
            "rlcore.reports.plotting",
            "rlcore.process.terminal",
            "rlcore.run_folder.folder",
        ),
        ("tests/faults/test_j_folders.py", "tests/unit/files/test_lock.py", "tests/unit/run_folder"),
    ),
    (
        ("rlcore.checkpoints.retention", "rlcore.checkpoints.manifest"),
        ("tests/unit/checkpoints/test_store.py", "tests/integration/test_ckpt.py"),
    ),
    *(
        ((f"rlcore_plugin_{name}",), (f"plugins/rlcore-plugin-{name}/tests",))
        for name in ("csv", "tensorboard", "wandb", "mlflow", "torch", "torchsnapshot", "dcp", "replay", "dqn", "video")
    ),
]


@dataclass(frozen=True)
class Name:
    """A function or method that tests should notice."""

    module: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.module}:{'.'.join(self.path)}"


def modules(name: str) -> Iterator[str]:
    """Yield a module, or the modules of a package."""
    module = importlib.import_module(name)
    yield name
    for found in pkgutil.iter_modules(getattr(module, "__path__", []), f"{name}."):
        yield from modules(found.name)


def does_something(function: Any) -> bool:
    """Return whether a body does more than explain itself, raise `NotImplementedError` or return None."""
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return False
    if not isinstance(definition, ast.FunctionDef):
        return False
    body = [
        node for node in definition.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    nothing = all(
        isinstance(node, ast.Pass)
        or (isinstance(node, ast.Raise) and "NotImplementedError" in ast.dump(node))
        or (isinstance(node, ast.Return) and (node.value is None or ast.dump(node.value) == "Constant(value=None)"))
        for node in body
    )
    return bool(body) and not nothing


def public_names(module_name: str) -> Iterator[Name]:
    """Yield what a module defines in public."""
    module = importlib.import_module(module_name)
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module_name:
            continue
        if inspect.isfunction(value) and does_something(value):
            yield Name(module_name, (name,))
        if inspect.isclass(value) and not getattr(value, "_is_protocol", False):
            for method, attribute in vars(value).items():
                if (not method.startswith("_") or method == "__call__") and does_something(plain(attribute)):
                    yield Name(module_name, (name, method))


def plain(attribute: Any) -> Any:
    """Return the function in a property, class method or static method."""
    if isinstance(attribute, property):
        return attribute.fget
    return getattr(attribute, "__func__", attribute)


def emptied(attribute: Any) -> Any:
    """Return the same attribute with a body that returns None."""

    @functools.wraps(plain(attribute))
    def replaced(*arguments: Any, **keywords: Any) -> None:
        return None

    if isinstance(attribute, property):
        return property(replaced)
    kind = type(attribute)
    return kind(replaced) if kind in (classmethod, staticmethod) else replaced


def empty(name: Name) -> None:
    """Replace the body of a name, wherever it was imported to."""
    owner: Any = importlib.import_module(name.module)
    for part in name.path[:-1]:
        owner = getattr(owner, part)
    attribute = vars(owner)[name.path[-1]]
    replaced = emptied(attribute)
    setattr(owner, name.path[-1], replaced)
    if len(name.path) > 1:
        return
    for module in list(sys.modules.values()):
        for key, value in list(vars(module).items()) if getattr(module, "__name__", "").startswith("rlcore") else []:
            if value is attribute:
                setattr(module, key, replaced)


def noticed(name: Name, tests: tuple[str, ...]) -> bool:
    """Return whether a test fails without the body of `name`."""
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        code = 1
        try:
            empty(name)
            code = int(pytest.main([*tests, "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--timeout=60"]))
        finally:
            os._exit(0 if code == 0 else 1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) != 0


def survivors(report: Callable[[str], None], wanted: tuple[str, ...] = ()) -> list[Name]:
    """Return the names whose loss no test notices."""
    found = []
    for packages, tests in TARGETS:
        if wanted and not set(wanted) & set(packages):
            continue
        for module in [module for package in packages for module in modules(package)]:
            for name in public_names(module):
                if not noticed(name, tests):
                    report(f"not noticed: {name}")
                    found.append(name)
    return found


def main() -> int:
    """Print the survivors; the exit code is 1 when there are any."""
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    importlib.import_module("torch").set_num_threads(1)
    importlib.import_module("tensordict")
    found = survivors(lambda line: print(line, flush=True), tuple(sys.argv[1:]))
    print(f"{len(found)} names could return None unnoticed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
