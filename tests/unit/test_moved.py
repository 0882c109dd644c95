"""Imports by the names that modules had go on working, and say what to write instead."""

import importlib
import subprocess
import sys

import pytest

import rlcore
from rlcore.errors import MovedError
from rlcore.moved import DOORS, INSIDE, RENAMED

# what plugins, templates and docs imported
NAMES = {
    "batch_storage": "BatchStorage layout_of",
    "buffer": "MASK rows",
    "collect": "",  # its functions are methods of `EnvCollector`
    "components": "Component",
    "config": "Interval Secret",
    "context": "Context",
    "env_checks": "check_env_specs",
    "env_maker": "EnvMaker",
    "exploration": "ExplorationType exploration_type set_exploration_type",
    "factory": "Factory",
    "fitting": "check_array",
    "growing_file": "GrowingFile",
    "hookspecs": "hookimpl",
    "inside": "inside plain_file",
    "log_values": "Histogram flat histogram image name row to_numpy video",
    "logger_base": "LoggerBase",
    "media": "file_name gif png side_by_side",
    "metrics": "Last",
    "minibatch": "Minibatch",
    "optimizers": "OptimizerConfig parameters_of",
    "output_types": "Checkpointer InPlaceCheckpointer Logger",
    "play": "play",
    "progress": "ENDLESS Every Progress",
    "random_state": "seed_all untouched_generators",
    "records": "EnvSpec Episode EvaluationResult RunInfo Step",
    "rollouts": "random_actions rollout",
    "signals": "STOPPING",
    "spool": "Record",
    "spooling_logger": "SpoolingLogger own_spool require_library spool_folder",
    "state_tree": "through_checkpoint",
    "step_checks": "BOOL FLOAT as_numbers",
    "stepping": "Acting Rollout inexact_env unrestored_env",
    "streams": "lenient",
    "targets": "TargetConfig TargetUpdater",
    "tensor_files": "Form TensorFiles dense read_description write_description",
    "tensor_memory": "bytes_of copy_in_pieces pieces",
    "trainer": "Trainer",
    "transformed": "observation_dtype",
    "watchdog": "Heart",
}
OLD = [(module, name) for module, names in NAMES.items() for name in names.split()]


def test_the_table_is_tested_in_full():
    assert set(NAMES) == set(DOORS)


@pytest.mark.parametrize(("module", "name"), OLD)
def test_a_name_can_be_imported_from_where_it_was(module, name):
    with pytest.warns(DeprecationWarning, match=rf"from rlcore\.{module} import {name}: write from ") as warned:
        value = getattr(importlib.import_module(f"rlcore.{module}"), name)
    lines = {str(warning.message) for warning in warned}  # of everything that Python warns of meanwhile
    (line,) = [line for line in lines if line.startswith(f"from rlcore.{module} import ")]
    door, _, there = line.partition(": write from ")[2].partition(" import ")
    assert there == RENAMED.get(name, name)
    assert getattr(importlib.import_module(door), there) is value


def test_a_script_is_warned_at_its_own_line(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import rlcore\nfrom rlcore import context\nfrom rlcore.logger_base import LoggerBase\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = "DeprecationWarning: from rlcore.logger_base import LoggerBase: write from rlcore.loggers import Logger"
    assert f"{script}:3: {told}" in done.stderr


@pytest.mark.parametrize("module", sorted(INSIDE))
def test_a_module_inside_the_core_says_what_plugins_may_import(module):
    with pytest.raises(ModuleNotFoundError, match=rf"rlcore\.{module} is another module now, inside the core; what pl"):
        importlib.import_module(f"rlcore.{module}")


def test_a_name_that_is_at_no_door_says_what_plugins_may_import():
    with pytest.raises(ImportError, match=r"rlcore\.tensor_files has no 'hidden' that plugins may import"):
        from rlcore.tensor_files import hidden
    with pytest.raises(ImportError, match=r"cannot import name 'hidden' from 'rlcore\.config'"):
        from rlcore.config import hidden  # noqa: F401


def test_a_module_that_never_was_is_not_found_as_ever():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'rlcore\.never'"):
        importlib.import_module("rlcore.never")


def test_a_plugin_that_imports_from_inside_the_core_is_told_so(workdir, write_config):
    (workdir / "mine.py").write_text("import rlcore.loop\n")
    with pytest.raises(rlcore.ConfigError, match=r"mine.py' failed: MovedError: .*components.md$") as error:
        rlcore.load_config(write_config(plugins={"files": ["mine.py"]}))
    assert isinstance(error.value.__cause__ or error.value, Exception)


def test_importing_rlcore_does_not_read_the_table():
    code = "import sys, rlcore; print('rlcore.moved' in sys.modules, 'difflib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"], done.stderr


def test_what_is_not_there_of_another_package_is_none_of_its_business():
    with pytest.raises(ModuleNotFoundError, match="No module named 'nowhere'"):
        importlib.import_module("nowhere")
    assert MovedError.exit_code == 2
