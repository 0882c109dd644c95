"""Imports point one way, and what must be light is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "rlcore"

# From the bottom to the top; a module imports only from rows above its own (lower layers). Imports for type checking
# do not count, imports inside functions do.
LAYERS = [
    {"state_kinds"},
    {"errors", "records", "migrations", "output_types", "streams", "terminal"},
    {"companion", "companion_process", "moving_save", "liveness", "log_values"},
    {"leaving", "types", "well_known", "progress", "watchdog", "episodes", "logger_base", "inside"},
    {"patience"},
    {"background_save", "forks", "config", "context", "hookspecs", "minibatch", "state_tree", "tensor_memory"},
    {"components"},
    {"config_changes", "optimizer_state", "dependents"},
    {"build_problems", "run_folder", "manifest", "signals", "random_state", "exploration", "media", "sources"},
    {"action_check", "step_checks", "entries", "fitting", "origin"},
    {"torchrl_states"},
    {"implementations", "tensor_files", "durable_files", "scheduled", "torch_steps", "retention", "trust"},
    {"growing_file"},
    {"hooks", "log_writer", "adam", "transformed", "snapshot", "evaluations", "exactness", "resume"},
    {"spool_note", "spool_records"},
    {"space_watch", "svg", "spool", "batch_storage", "env_maker", "curves"},
    {"stepping", "run_files"},
    {"joined_env", "plotting"},
    {"play", "rollouts", "plugins", "compiled", "checkpoint", "metrics", "boundary", "assembly", "optimizer_step"},
    {"targets", "report", "spool_sender"},
    {"ops", "updating", "env_checks"},
    {"spooling_logger", "loggers"},
    {"script_env", "collect", "buffer", "learner", "evaluate", "optimizers", "schedules", "stock", "builtin"},
    {"sections"},
    {"saver", "adapters", "convert"},
    {"parts"},
    {"saving"},
    {"script_settings"},
    {"script_storage"},
    {"loop", "scripted"},
    {"script_attributes"},
    {"script_hooks"},
    {"trainer"},
    {"helpers", "algorithms"},
    {"builder", "factory"},
    {"resuming"},
    {"run"},
    {"all_problems"},
    {"summary", "config_schema", "ending"},
    {"testing"},
    {"prove"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names}
# found through the registry, as the parts of any other plugin are
PARTS = {"collect", "buffer", "learner", "evaluate", "optimizers", "schedules"}


def modules():
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def layer_name(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(tree, package=("rlcore",)):
    """Yield (line, dotted name) of every import that happens when the module runs."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: a relative import"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        else:
            yield from imported(node)


def imports_of(path):
    found = []
    for line, name in imported(ast.parse(path.read_text())):
        parts = name.split(".")
        if parts[0] == "rlcore" and len(parts) > 1:
            found.append((line, parts[1]))
    return found


def test_every_module_has_one_layer():
    names = [name for layer in LAYERS for name in layer]
    assert len(names) == len(set(names))
    present = {layer_name(path) for path in modules()}
    assert present - set(names) == set(), "give each of these modules a layer"
    assert set(names) - present == set(), "these modules are gone"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    own = layer_name(path)
    for line, name in imports_of(path):
        if name in LAYER_OF and name != own:
            assert LAYER_OF[name] < LAYER_OF[own], f"{path}:{line} imports {name}, which is not below {own}"


def test_parts_of_the_core_are_reached_through_the_registry():
    for path in modules():
        own = layer_name(path)
        if own in (*PARTS, "testing"):
            continue
        reached = [f"{path}:{line} imports {name}" for line, name in imports_of(path) if name in PARTS]
        assert not reached


def test_the_checks_would_find_an_import():
    code = "import rlcore.training.loop\nif TYPE_CHECKING:\n    import rlcore.run.build\ndef f():\n    from rlcore import cli\n"
    assert list(imported(ast.parse(code))) == [(1, "rlcore.scripts.trainer"), (5, "rlcore.cli.command_line")]


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
    ],
    ids=["import", "names", "help", "plugins list", "plugin modules"],
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

    assert not set(rlcore.__all__) & {layer_name(path) for path in modules()}
