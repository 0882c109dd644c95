"""Convolutional networks for images: bodies before the heads of the models of other plugins."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "model",
            "nature-cnn",
            f"{__name__}.model:NatureCNNModel",
            summary="actor and critic of images behind three convolutions",
        ),
        Component(
            "model",
            "impala-cnn",
            f"{__name__}.model:ImpalaCNNModel",
            summary="actor and critic of images behind residual blocks",
        ),
    ]
