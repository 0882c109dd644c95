"""Curves, tables and pages about runs, from their folders alone; and the training of several seeds."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return nothing: a config names none of this; it adds commands, and lends the core what draws and reads curves."""
    return []
