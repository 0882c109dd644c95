"""The torch.save checkpoint back end of rlcore."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component("checkpointer", "torch", f"{__name__}.checkpointer:TorchCheckpointer", summary="one tensors.pt file")
    ]
