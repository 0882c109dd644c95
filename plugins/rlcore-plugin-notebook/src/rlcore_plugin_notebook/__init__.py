"""rlcore in Jupyter notebooks: a hook that shows a run while it trains, and pictures of runs and agents."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component(
            "hook",
            "notebook",
            f"{__name__}.display:NotebookDisplay",
            summary="a bar and curves below the cell of a notebook, while the run trains",
            shows=True,
        )
    ]
