"""Models that other libraries trained, taken along: `rlcore import` makes a run folder of their file."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return nothing: a config names none of this; it adds a command."""
    return []
