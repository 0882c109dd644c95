"""The torch.distributed.checkpoint back end of rlcore."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    target = f"{__name__}.checkpointer:DcpCheckpointer"
    return [Component("checkpointer", "dcp", target, summary="torch.distributed.checkpoint, one file per rank")]
