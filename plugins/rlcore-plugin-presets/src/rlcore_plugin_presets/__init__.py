"""Presets: complete configs that plugins bring, written by `rlcore init`, or trained in one line of Python."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return nothing: a config names none of this; it adds a command, and lends `rlcore` its algorithms."""
    return []
