"""The toy components, for tests: `use = "testing:toy"`; and the parts of the fault tools."""

from rlcore.hooks.specs import hookimpl
from rlcore.plugins.component import Component

_TOY = "rlcore_plugin_testing.toy"
_PARTS = "rlcore_plugin_testing.toy_parts"
_FAULTS = "rlcore_plugin_testing.faults"


@hookimpl
def provide_components() -> list[Component]:
    """Return the toy components and the parts of the fault tools."""
    return [
        Component("env", "toy", f"{_TOY}:ToyEnv", summary="episodes of known lengths, ends and returns"),
        Component(
            "env",
            "toy-pixels",
            "rlcore_plugin_testing.toy_pixels:ToyPixels",
            summary="the same episodes, seen as images",
        ),
        Component(
            "env", "toy-dict", "rlcore_plugin_testing.toy_dict:ToyDict", summary="the same episodes, seen as dicts"
        ),
        Component("model", "toy", f"{_TOY}:ToyModel", summary="a linear actor and critic"),
        Component(
            "model",
            "toy-memory",
            "rlcore_plugin_testing.toy_memory:ToyMemoryModel",
            summary="a recurrent actor and critic",
        ),
        Component("transform", "toy", f"{_PARTS}:ToyTransform", summary="subtracts a running mean"),
        Component("estimator", "toy", f"{_PARTS}:ToyEstimator", summary="one-step advantages"),
        Component("loss", "toy", f"{_PARTS}:ToyLoss", summary="actor-critic in its plainest form"),
        Component(
            "buffer",
            "toy-data",
            "rlcore_plugin_testing.toy_data:ToyData",
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
