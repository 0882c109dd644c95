"""The torchsnapshot checkpoint back end of rlcore."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    target = f"{__name__}.checkpointer:TorchsnapshotCheckpointer"
    return [Component("checkpointer", "torchsnapshot", target, summary="a torchsnapshot, with bounded memory")]
