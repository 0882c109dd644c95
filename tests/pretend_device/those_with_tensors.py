"""Leaves of the contract suites those of parts that handle tensors: loggers get numbers, wherever these were."""

from rlcore_plugin_testing.contracts import ComponentContract

# JAX has no such device, and Atari's games are of arrays; the others would take minutes, as each of their many
# operations goes through Python there
LEFT_OUT = (
    "plugin-atari",
    "plugin-jax",
    "TestAcrobot",
    "TestAsterix",
    "TestBalance",
    "TestFreeway",
    "TestLossWithoutDropout",
    "TestModelOfImages",
    "TestModelOfOneCritic",
    "TestModelThatBeginsAtRandom",
    "TestNavigation",
    "TestSeaquest",
    "TestSpaceInvaders",
    "TestTransport",
)


def pytest_collection_modifyitems(config, items):
    suites = [item for item in items if issubclass(item.cls or object, ComponentContract)]
    of_tensors = [item for item in suites if item.cls.kind != "logger"]
    kept = [item for item in of_tensors if not any(name in item.nodeid for name in LEFT_OUT)]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
