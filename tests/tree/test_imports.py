"""Imports point one way, and what must be light is light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "rlcore"

# The rooms from the ground up, and what each imports: rooms above it in this table, besides those of FOR_ALL. Imports
# for annotations and inside functions count. What a room does not import any more goes from its line.
ROOMS = {
    "lazy": "",
    "late_compiler": "",
    "errors": "",
    "version": "",
    "files": "",
    "types": "",
    "process": "files types",
    "hooks": "types",
    "plugins": "version types hooks",
    "config": "types plugins",
    "state": "types plugins",
    "envs": "types plugins",
    "loggers": "types process plugins",
    "learners": "types process plugins",
    "collectors": "types plugins",
    "buffers": "types plugins",
    "checkpoints": "files types config state",
    "run_folder": "files config checkpoints",
    "training": "files types process hooks plugins state loggers checkpoints",
    "core_hooks": "types process hooks state loggers learners run_folder training",
    "run": ("files types process hooks plugins config state envs loggers checkpoints run_folder training core_hooks"),
    "scripts": (
        "types hooks plugins config state envs loggers learners collectors buffers checkpoints training core_hooks run"
    ),
    "helpers": "plugins",
    "algorithms": "plugins",
    "cli": "version types process plugins config state run_folder run",
}
FOR_ALL = ("errors", "lazy")
# the front door and the door of `python -m rlcore`: nobody else imports them
DOORS = {"__init__", "__main__"}


def files():
    return sorted(path for path in PACKAGE.rglob("*.py") if "templates" not in path.relative_to(PACKAGE).parts)


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def module_of(path):
    return ".".join(("rlcore", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {module_of(path): path for path in files()}


def imported(tree):
    """Yield (line, dotted name) of every import, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: a relative import"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def is_import(node):
    return isinstance(node, ast.Import | ast.ImportFrom)


def is_for_types(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports_of(path):
    """Return (line, module of the core) of every import of a file but of itself."""
    found = []
    for line, name in imported(ast.parse(path.read_text())):
        while name not in MODULES and "." in name:
            name = name.rpartition(".")[0]
        if name.partition(".")[0] == "rlcore" and name != module_of(path):
            found.append((line, name))
    return found


def problems(own, path):
    """Yield what is wrong with the imports of a file of a room."""
    order = list(ROOMS)
    for line, name in imports_of(path):
        room = name.split(".")[1] if "." in name else "__init__"
        if room in (own, *FOR_ALL):
            continue
        if room in DOORS:
            yield f"{path}:{line} imports {name}, which only people and plugins import"
        elif order.index(room) > order.index(own):
            yield f"{path}:{line} imports {name}: {room} is above {own}"
        elif room not in ROOMS[own].split():
            yield f"{path}:{line} imports {name}: {room} is not among what {own} imports"


def test_every_file_lies_in_a_room():
    present = {room_of(path) for path in files()}
    assert present - set(ROOMS) - DOORS == set(), "give each of these rooms its line"
    assert set(ROOMS) - present == set(), "these rooms are gone"


def test_the_table_itself_goes_one_way():
    order = list(ROOMS)
    for room, allowed in ROOMS.items():
        assert [other for other in allowed.split() if order.index(other) >= order.index(room)] == []


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_imports_point_one_way(room):
    assert [problem for path in files() if room_of(path) == room for problem in problems(room, path)] == []


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_imports_all_that_the_table_lets_it(room):
    used = {name.split(".")[1] for path in files() if room_of(path) == room for _, name in imports_of(path)}
    assert set(ROOMS[room].split()) - used == set()


def test_no_files_import_each_other_in_a_circle():
    waiting = {name: {other for _, other in imports_of(path)} for name, path in MODULES.items()}
    while True:
        free = {name for name, others in waiting.items() if not others & set(waiting)}
        if not free:
            break
        for name in free:
            del waiting[name]
    assert set(waiting) == set()


def test_the_core_imports_no_plugin():
    """But for what reads types, of the names that plugins lend."""
    for path in files():
        tree = ast.parse(path.read_text())
        for_types = {id(node) for block in ast.walk(tree) if is_for_types(block) for node in ast.walk(block)}
        executed = ast.Module([node for node in ast.walk(tree) if id(node) not in for_types and is_import(node)], [])
        assert [name for _, name in imported(executed) if name.startswith("rlcore_plugin_")] == [], path


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("from rlcore.training.loop import Loop", "training is above state"),
        ("if TYPE_CHECKING:\n    from rlcore.training.loop import Loop", "training is above state"),
        ("def f():\n    import rlcore.run.build", "run is above state"),
        ("from rlcore.hooks import points", "hooks is not among what state imports"),
        ("from rlcore import Trainer", "which only people and plugins import"),
    ],
    ids=["import", "annotation", "inside a function", "not declared", "the front door"],
)
def test_an_import_that_points_the_wrong_way_is_found(code, problem, tmp_path, monkeypatch):
    planted = tmp_path / "state" / "planted.py"
    planted.parent.mkdir()
    planted.write_text(code)
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    (found,) = problems("state", planted)
    assert problem in found


HEAVY = ("torch", "tensordict", "gymnasium", "matplotlib", "tensorboard", "av", "wandb", "mlflow")


@pytest.mark.parametrize(
    "code",
    [
        "import rlcore",
        "from rlcore import Component, hookimpl, ConfigError, Progress, Every, Minibatch, Step, EnvSpec, Context",
        "from rlcore.cli.command_line import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass",
        "from rlcore.cli.command_line import main\nassert main(['plugins', 'list']) == 0",
        "from rlcore.plugins.host import PluginHost, installed\nhost = PluginHost()\n"
        "[host.load(p.name) for p in installed() if p.distribution.startswith('rlcore-plugin-')]",
        "import rlcore.cli.train\nimport rlcore_plugin_ddp.processes, rlcore_plugin_ddp.ranks.supervisor",
    ],
    ids=["import", "names", "help", "plugins list", "plugin modules", "supervisor of ranks"],
)
def test_what_must_be_light_imports_nothing_heavy(code, tmp_path):
    report = f"\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"


def test_public_names_are_those_that_are_listed():
    import rlcore

    assert rlcore.__all__ == sorted(rlcore.__all__, key=lambda name: (name == "__version__", name))
    for name in rlcore.__all__:
        assert getattr(rlcore, name) is not None
    assert set(dir(rlcore)) == set(rlcore.__all__)
    with pytest.raises(AttributeError, match="module 'rlcore' has no attribute 'trian'"):
        _ = rlcore.trian


def test_no_public_name_is_that_of_a_module():
    """An import of the module would put it in the place of the name."""
    import rlcore

    assert not set(rlcore.__all__) & {room_of(path) for path in files()}


def test_code_of_a_config_is_loaded_in_one_place():
    """There it is asked whether it may run."""
    loads = re.compile(r"\b(load_file|make_importable)\(")
    callers = {module for module, path in MODULES.items() if loads.search(path.read_text())}
    assert callers == {"rlcore.config.trust", "rlcore.config.own_modules", "rlcore.plugins.host"}, "two define them"
