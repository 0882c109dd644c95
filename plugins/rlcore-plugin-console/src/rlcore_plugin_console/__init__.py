"""A console for the browser over a folder of runs: what they do, and commands that train, as buttons."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return nothing: a config names none of this; it adds commands."""
    return []
