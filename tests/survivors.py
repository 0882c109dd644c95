"""Which public functions could return None without any test noticing?

    python tests/survivors.py                        every row of TARGETS
    python tests/survivors.py rlcore.hooks          the rows that name this module or package

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
FAULTS = "tests/faults"
UNIT = "tests/unit"
COMPONENTS = "tests/contract/test_components.py"
ZOO = "plugins/rlcore-plugin-pettingzoo/tests/test_policies.py"
# modules or packages, and where their tests are, in the order of the rooms; every room and every plugin is named
TARGETS: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    (("rlcore.lazy", "rlcore.errors"), ("tests/tree/test_lazy.py", f"{UNIT}/test_errors.py")),
    (
        ("rlcore.files.growing", "rlcore.files.log_files", "rlcore.files.table", "rlcore.training.evaluations"),
        (f"{FAULTS}/test_e_logs.py", f"{UNIT}/envs/test_evaluator.py", f"{UNIT}/files/test_log_files.py"),
    ),
    (("rlcore.files.plain_files",), (f"{UNIT}/files/test_plain_files.py", f"{FAULTS}/test_j_folders.py")),
    (("rlcore.files.replacement", "rlcore.files.lock"), (f"{UNIT}/files",)),
    (("rlcore.types",), (f"{UNIT}/types", f"{UNIT}/training")),
    (("rlcore.process.signals", "rlcore.process.watchdog"), (f"{UNIT}/process", f"{FAULTS}/test_a_process.py")),
    (("rlcore.hooks",), ("tests/hooks", "tests/trainer/test_operations.py")),
    (("rlcore.plugins",), (f"{UNIT}/plugins", "tests/third_party", f"{FAULTS}/test_d_plugins.py")),
    (("rlcore.config.file", "rlcore.config.sections"), (f"{UNIT}/config", f"{FAULTS}/test_i_config.py")),
    (
        ("rlcore.training.checks", "rlcore.config.problems"),
        (f"{FAULTS}/test_i_entries.py", f"{FAULTS}/test_i_all_at_once.py"),
    ),
    (("rlcore.state.memory", "rlcore_plugin_torch.tensor_files"), (f"{UNIT}/state/test_memory.py",)),
    (("rlcore.state.sources",), (f"{UNIT}/state/test_sources.py", f"{FAULTS}/test_c_sources.py")),
    (("rlcore.state.tree", "rlcore.state.kinds"), (f"{UNIT}/state/test_tree.py",)),
    (
        ("rlcore.envs.checks", "rlcore.envs.rollout"),
        (f"{UNIT}/envs/test_checks.py", f"{UNIT}/envs/test_rollout.py"),
    ),
    (
        ("rlcore.envs.step_checks", "rlcore.envs.space_watch", "rlcore.envs.action_check"),
        (f"{FAULTS}/test_f_wrong_steps.py",),
    ),
    (("rlcore.loggers",), (f"{UNIT}/loggers", "plugins/rlcore-plugin-csv/tests", "tests/trainer/test_loop.py")),
    (("rlcore.restore",), (f"{UNIT}/restore", f"{FAULTS}/test_c_resume.py")),
    (("rlcore.learners",), (f"{UNIT}/learners", COMPONENTS)),
    (("rlcore_plugin_compile",), ("plugins/rlcore-plugin-compile/tests",)),
    (("rlcore.collectors",), (f"{UNIT}/collectors", COMPONENTS, "tests/trainer")),
    (("rlcore.buffers",), (f"{UNIT}/buffers", COMPONENTS)),
    (("rlcore.policies", "rlcore.config.policies"), (f"{UNIT}/policies", f"{UNIT}/config/test_policies.py", ZOO)),
    (
        ("rlcore_plugin_reports.conversion", "rlcore.checkpoints.migrations"),
        ("plugins/rlcore-plugin-reports/tests/test_convert.py",),
    ),
    (
        ("rlcore.checkpoints.retention", "rlcore.checkpoints.removal", "rlcore.checkpoints.manifest"),
        (f"{UNIT}/checkpoints/test_store.py", "plugins/rlcore-plugin-reports/tests/test_ckpt.py"),
    ),
    (
        (
            "rlcore.run_folder",
            "rlcore_plugin_reports.run_files",
            "rlcore_plugin_reports.plotting",
            "rlcore.process.terminal",
        ),
        (f"{FAULTS}/test_j_folders.py", f"{UNIT}/files/test_lock.py", f"{UNIT}/run_folder"),
    ),
    (
        ("rlcore.run_folder.origin", "rlcore.config.changes"),
        (f"{FAULTS}/test_c_bound_resume.py", f"{UNIT}/restore"),
    ),
    (("rlcore.training.loop", "rlcore.training.lockstep"), (f"{UNIT}/training", "tests/trainer/test_loop.py")),
    (("rlcore.stock",), ("tests/stock", COMPONENTS, "tests/trainer")),
    (("rlcore.assembly", "rlcore.scripts"), ("tests/trainer",)),
    (("rlcore.run",), (f"{UNIT}/run", "tests/integration/test_failed_runs.py")),
    (("rlcore_plugin_agents", "rlcore.envs.spec_records"), ("plugins/rlcore-plugin-agents/tests",)),
    (
        ("rlcore_plugin_reports.html", "rlcore_plugin_reports.svg", "rlcore_plugin_reports.curves"),
        ("plugins/rlcore-plugin-reports/tests", "tests/integration/test_report.py"),
    ),
    (
        (
            "rlcore_plugin_reports.comparison",
            "rlcore_plugin_reports.comparison_table",
            "rlcore_plugin_reports.statistics",
        ),
        ("plugins/rlcore-plugin-reports/tests", "tests/integration/test_compare.py"),
    ),
    (("rlcore.run.shares", "rlcore.state.ranks"), (f"{UNIT}/run",)),
    (("rlcore_plugin_reports.seeds",), ("plugins/rlcore-plugin-reports/tests", "tests/integration/test_seeds.py")),
    (("rlcore.algorithms", "rlcore.helpers"), (f"{UNIT}/plugins/test_known.py",)),
    (("rlcore_plugin_torchrl.algorithms",), ("plugins/rlcore-plugin-torchrl/tests", "tests/parity/test_algorithms.py")),
    (
        tuple(f"rlcore_plugin_testing.{name}" for name in ("compare", "contracts", "light_import", "small_run", "toy")),
        ("tests/contract/test_tools.py", "tests/contract/test_suites_catch.py"),
    ),
    (("rlcore_plugin_testing.prove",), ("tests/integration/test_prove.py",)),
    (("rlcore_plugin_testing.new_plugin",), ("plugins/rlcore-plugin-testing/tests/test_new_plugin.py",)),
    (("rlcore.cli",), ("tests/integration/test_commands.py", "tests/integration/test_listing.py")),
    *(
        ((folder.name.replace("-", "_"),), (f"plugins/{folder.name}/tests",))
        for folder in sorted((ROOT / "plugins").iterdir())
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
