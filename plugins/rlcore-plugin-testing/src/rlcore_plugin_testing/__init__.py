"""Tools for the tests of plugins: toy parts, a small run of them, and a contract suite for every kind of component.

Names are resolved when they are first used, since listing plugins imports this module. Nothing here is used by a run,
except the toy parts and those of the fault tools, when a config names them: `use = "testing:toy"`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore import Component, hookimpl
from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.state.tree import through_checkpoint as through_checkpoint
    from rlcore_plugin_testing.compare import difference as difference
    from rlcore_plugin_testing.compare import snapshot as snapshot
    from rlcore_plugin_testing.killed import check_killed as check_killed
    from rlcore_plugin_testing.light_import import check_light_import as check_light_import
    from rlcore_plugin_testing.processes import Processes as Processes
    from rlcore_plugin_testing.resumed import check_resumed as check_resumed
    from rlcore_plugin_testing.small_run import TOY_CONFIG as TOY_CONFIG
    from rlcore_plugin_testing.small_run import make_config as make_config
    from rlcore_plugin_testing.small_run import make_run as make_run
    from rlcore_plugin_testing.small_run import make_trainer as make_trainer

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.state.tree": "through_checkpoint",
        "rlcore_plugin_testing.compare": "difference snapshot",
        "rlcore_plugin_testing.killed": "check_killed",
        "rlcore_plugin_testing.light_import": "check_light_import",
        "rlcore_plugin_testing.processes": "Processes",
        "rlcore_plugin_testing.resumed": "check_resumed",
        "rlcore_plugin_testing.small_run": "TOY_CONFIG make_config make_run make_trainer",
    },
)

_TOY = f"{__name__}.toy"
_PARTS = f"{__name__}.toy_parts"
_FAULTS = f"{__name__}.faults"


@hookimpl
def provide_components() -> list[Component]:
    """Return the toy components and the parts of the fault tools."""
    return [
        Component("env", "toy", f"{_TOY}:ToyEnv", summary="episodes of known lengths, ends and returns"),
        Component(
            "env",
            "toy-pixels",
            f"{__name__}.toy_pixels:ToyPixels",
            summary="the same episodes, seen as images",
        ),
        Component("env", "toy-dict", f"{__name__}.toy_dict:ToyDict", summary="the same episodes, seen as dicts"),
        Component("model", "toy", f"{_TOY}:ToyModel", summary="a linear actor and critic"),
        Component(
            "model",
            "toy-memory",
            f"{__name__}.toy_memory:ToyMemoryModel",
            summary="a recurrent actor and critic",
        ),
        Component("transform", "toy", f"{_PARTS}:ToyTransform", summary="subtracts a running mean"),
        Component("estimator", "toy", f"{_PARTS}:ToyEstimator", summary="one-step advantages"),
        Component("loss", "toy", f"{_PARTS}:ToyLoss", summary="actor-critic in its plainest form"),
        Component(
            "buffer",
            "toy-data",
            f"{__name__}.toy_data:ToyData",
            summary="rows of its own, for runs without envs",
        ),
        Component("hook", "toy", f"{_PARTS}:ToyHook", summary="counts iterations"),
        Component("logger", "toy", f"{_PARTS}:ToyLogger", summary="rows as lines of JSON"),
        Component("checkpointer", "toy", f"{_PARTS}:ToyCheckpointer", summary="the bytes of the tensors in one file"),
        Component(
            "hook", "recorder", f"{_FAULTS}.recorder:Recorder", summary="hashes of all that is trained, to a file"
        ),
        Component("env", "faulty", f"{_FAULTS}.parts:FaultyEnv", summary="the toy env, which fails as it is told"),
        Component("hook", "faulty", f"{_FAULTS}.parts:FaultyHook", summary="fails at a point as it is told"),
        Component("hook", "killer", f"{_FAULTS}.killer:Killer", summary="sends this process a signal, as planned"),
    ]
