"""Groups of processes that train one model for rlcore."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "launcher", "processes", "rlcore_plugin_ddp.processes:Processes", summary="ranks on this host, as processes"
        ),
        Component(
            "launcher",
            "torchrun",
            "rlcore_plugin_ddp.torchrun:Torchrun",
            summary="ranks that torchrun starts, on one host or several",
        ),
    ]
