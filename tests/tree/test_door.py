"""Plugins come in by the door: packages of the core that say with `__all__` what authors of plugins may use."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from rlcore.lazy import lazy

ROOT = Path(__file__).parents[2]
# the one distribution that may know the inside of the core: its suites look into parts, and its tools break them
INSIDER = "rlcore-plugin-testing"
PLUGINS = {
    folder: sorted([*folder.rglob("*.py"), *folder.rglob("*.py.in")])
    for folder in (
        *(folder / "src" for folder in sorted((ROOT / "plugins").iterdir()) if folder.name != INSIDER),
        *sorted((ROOT / "examples" / "third_party").iterdir()),
        ROOT / "plugins" / INSIDER / "src" / "rlcore_plugin_testing" / "templates" / "plugin",
    )
}
# what anybody may use, and what is for the authors of some kind of component
DOORS = (
    "rlcore",
    "rlcore.algorithms",
    "rlcore.errors",
    "rlcore.helpers",
    "rlcore.types",
    "rlcore.buffers",
    "rlcore.checkpoints",
    "rlcore.cli",
    "rlcore.collectors",
    "rlcore.config",
    "rlcore.envs",
    "rlcore.files",
    "rlcore.learners",
    "rlcore.loggers",
    "rlcore.plugins",
    "rlcore.process",
    "rlcore.run",
    "rlcore.run_folder",
    "rlcore.state",
    # packages whose names are imported when they are used
    "rlcore.lazy",
    # for loggers that send to servers
    "rlcore_plugin_spool",
    # for what shows figures of runs
    "rlcore_plugin_reports",
    # for their tests
    "rlcore_plugin_testing",
    "rlcore_plugin_testing.contracts",
    "rlcore_plugin_testing.contracts.data",
    "rlcore_plugin_spool.contracts",
)
PACKAGES = {door.partition(".")[0] for door in DOORS}


def parsed(path):
    """Return the code of a file; of a template, with its blanks filled."""
    return ast.parse(re.sub(r"\$\{?(\w+)\}?", r"\1", path.read_text()))


def is_public(module, name):
    """Return whether a module offers a name, at run time or to those who read types."""
    if f"{module}.{name}" in DOORS:
        return True
    offered = importlib.import_module(module)
    for_types = f"import {name} as {name}\n" in Path(offered.__file__).read_text()
    return for_types or name in getattr(offered, "__all__", [n for n in vars(offered) if not n.startswith("_")])


def problems(path):
    """Yield the imports of a file that go past the door of another package."""
    packages = PACKAGES - ({*path.parts} - {"rlcore"})
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in packages and "." in alias.name:
                    yield f"{path}:{node.lineno} import {alias.name}: import names from it"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in packages:
            if node.module not in DOORS:
                yield f"{path}:{node.lineno} {node.module} is no door; the doors are {', '.join(DOORS)}"
            else:
                for alias in node.names:
                    if not is_public(node.module, alias.name):
                        yield f"{path}:{node.lineno} {alias.name} is not in the __all__ of {node.module}"


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_plugins_come_in_by_the_door(folder):
    assert PLUGINS[folder]
    assert [problem for path in PLUGINS[folder] for problem in problems(path)] == []


def test_what_a_run_is_made_of_imports_no_tools_for_tests():
    """They are a distribution of their own, which need not be installed."""
    sources = [*(ROOT / "rlcore").rglob("*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
    imports = re.compile(r"^\s*(?:from|import) rlcore_plugin_(?:testing|\w+\.contracts)\b", re.MULTILINE)
    importing = [path for path in sources if imports.search(path.read_text())]
    assert importing, "they import each other"
    assert [path for path in importing if INSIDER not in path.parts and path.name != "contracts.py"] == []


@pytest.mark.parametrize("door", DOORS)
def test_what_a_door_offers_is_there(door):
    module = importlib.import_module(door)
    for name in getattr(module, "__all__", ()):
        assert getattr(module, name) is not None


@pytest.mark.parametrize("door", DOORS)
def test_no_name_of_a_door_is_that_of_a_module(door):
    """An import of the module would put it in the place of the name."""
    module = importlib.import_module(door)
    for name in getattr(module, "__all__", ()):
        if not isinstance(getattr(module, name), type(ast)):
            assert not (Path(module.__file__).parent / f"{name}.py").exists()
            assert not (Path(module.__file__).parent / name).exists()


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("from rlcore.training.loop import Loop", "rlcore.training.loop is no door"),
        ("def f():\n    from rlcore.envs.packing import packed_env", "rlcore.envs.packing is no door"),
        ("from rlcore.envs import joined", "joined is not in the __all__ of rlcore.envs"),
        ("from rlcore.errors import _COUNTS_AS", "_COUNTS_AS is not in the __all__"),
        ("import rlcore.hooks.points", "import rlcore.hooks.points: import names from it"),
        ("class ${class_name}:\n    from rlcore.plugins import known", "known is not in the __all__ of rlcore.plugins"),
        ("from rlcore_plugin_testing.toy import ToyEnv", "rlcore_plugin_testing.toy is no door"),
        ("from rlcore_plugin_spool.spool import Spool", "rlcore_plugin_spool.spool is no door"),
    ],
    ids=[
        "module",
        "inside a function",
        "module of a room",
        "private",
        "import",
        "template",
        "of the tools for tests",
        "of a library",
    ],
)
def test_an_import_past_the_door_is_found(code, problem, tmp_path):
    planted = tmp_path / "planted.py"
    planted.write_text(code)
    (told,) = problems(planted)
    assert problem in told


def test_a_module_of_a_lazy_package_can_be_one_of_its_names():
    names, get, _ = lazy("rlcore.loggers", {"rlcore.loggers": "media", "rlcore.loggers.base": "LoggerBase"})
    assert names == ["LoggerBase", "media"]
    assert get("media").__name__ == "rlcore.loggers.media"
