"""Scenarios of VMAS for rlcore: several agents in many worlds, as tensors on the device of the run."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "env",
            "vmas",
            f"{__name__}.env:make",
            f"{__name__}.config:Config",
            "scenarios of VMAS, in which several agents act, as tensors on the device of the run",
        ),
    ]
