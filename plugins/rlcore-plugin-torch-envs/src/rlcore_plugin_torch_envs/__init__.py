"""Classic control and MinAtar in torch: many envs as tensors on one device, equal to the originals step by step."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "env",
            "torch-envs",
            f"{__name__}.env:make",
            f"{__name__}.env:Config",
            "classic control and MinAtar as tensors on the device of the run",
        ),
    ]
