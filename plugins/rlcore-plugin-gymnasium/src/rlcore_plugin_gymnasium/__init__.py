"""Gymnasium environments for rlcore."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "env",
            "gymnasium",
            f"{__name__}.env:make",
            f"{__name__}.config:Config",
            "Gymnasium environments: observations are an array, or a dict or tuple of arrays",
        ),
        Component(
            "transform",
            "observation-norm",
            "rlcore_plugin_transforms.fixed_norm:ObservationNorm",
            summary="normalise observations by fixed statistics of random frames",
        ),
    ]
