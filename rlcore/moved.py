"""Modules that plugins and scripts imported before the rooms: they go on working, and say what to write instead.

The table is read when an import finds nothing else, so that it costs nobody anything who does not need it.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from rlcore.errors import MovedError
from rlcore.lazy import unknown

# the packages that have the names of a module, by its name; the first that has a name is meant
DOORS: Final = {
    "batch_storage": "rlcore.collectors",
    "buffer": "rlcore.buffers rlcore.types",
    "collect": "rlcore.collectors",
    "components": "rlcore",
    "config": "rlcore.types",
    "context": "rlcore",
    "env_checks": "rlcore",
    "env_maker": "rlcore.assembly",
    "exploration": "rlcore",
    "factory": "rlcore",
    "fitting": "rlcore.restore",
    "growing_file": "rlcore.files",
    "hookspecs": "rlcore",
    "inside": "rlcore.files",
    "log_values": "rlcore.loggers.values",
    "logger_base": "rlcore.loggers",
    "media": "rlcore.loggers.media",
    "metrics": "rlcore",
    "minibatch": "rlcore",
    "optimizers": "rlcore.learners",
    "output_types": "rlcore.types",
    "play": "rlcore.envs",
    "progress": "rlcore rlcore.types",
    "random_state": "rlcore.state",
    "records": "rlcore rlcore.types",
    "rollouts": "rlcore rlcore.envs",
    "signals": "rlcore.process",
    "spool": "rlcore.spooling",
    "spooling_logger": "rlcore.spooling",
    "state_tree": "rlcore.testing",
    "step_checks": "rlcore.envs",
    "stepping": "rlcore.collectors rlcore.envs",
    "streams": "rlcore.process",
    "targets": "rlcore.learners",
    "tensor_files": "rlcore.checkpoints",
    "tensor_memory": "rlcore.state",
    "trainer": "rlcore",
    "transformed": "rlcore.envs",
    "watchdog": "rlcore.types",
}
# names that are others there
RENAMED: Final = {"LoggerBase": "Logger", "Rollout": "EnvStepper"}
# modules that were and are inside the core, under names that nobody may rely on
_INSIDE: Final = (
    "action_check adam adapters all_problems background_save boundary build_problems builder builtin checkpoint "
    "commands companion companion_process compiled config_changes config_schema convert curves dependents "
    "durable_files ending entries episodes evaluate evaluations exactness forks implementations joined_env "
    "learner leaving liveness log_writer loop manifest migrations moving_save ops optimizer_state optimizer_step "
    "origin parts patience plotting report resume resuming retention run_files saver saving scheduled schedules "
    "script_attributes script_env script_hooks script_settings script_storage scripted sections snapshot sources "
    "space_watch spool_note spool_records spool_sender state_kinds summary svg terminal torch_steps "
    "torchrl_states trust updating well_known"
)
INSIDE: Final = frozenset(_INSIDE.split())
_HELP: Final = "what plugins may import is listed in docs/explanation/plugins-and-components.md"


def spec_of(fullname: str) -> ModuleSpec | None:
    """Return how a module of the table is loaded, and None for any other."""
    name = fullname.removeprefix("rlcore.")
    return ModuleSpec(fullname, _Loader()) if name in DOORS or name in INSIDE else None


class _Loader(Loader):
    def exec_module(self, module: ModuleType) -> None:
        """Give a module its names, or refuse one that is inside the core."""
        if module.__name__.rpartition(".")[2] in INSIDE:
            raise MovedError(f"{module.__name__} is another module now, inside the core; {_HELP}", name=module.__name__)
        vars(module)["__getattr__"] = names_of(module.__name__)


def names_of(module: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module of the table: it warns, and returns the name from where it is."""
    doors = DOORS[module.removeprefix("rlcore.")].split()

    def get(name: str) -> Any:
        if name.startswith("__"):  # asked by the import system, of every module
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        there = RENAMED.get(name, name)
        for door in doors:
            package = importlib.import_module(door)
            if there in vars(package).get("__all__", vars(package)):  # a module alone has no `__all__`
                text = f"from {module} import {name}: write from {door} import {there}"
                warnings.warn(text, DeprecationWarning, stacklevel=2)
                return getattr(package, there)
        if "__path__" in vars(sys.modules[module]):  # asked before the import of a module below
            raise unknown(module, name)
        raise MovedError(f"{module} has no {name!r} that plugins may import; {_HELP}", name=module)

    return get
