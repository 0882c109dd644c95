"""Runs, exported policies and datasets pushed to other places and pulled from there; and plugins, searched."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return nothing: a config names none of this; it adds commands."""
    return []
