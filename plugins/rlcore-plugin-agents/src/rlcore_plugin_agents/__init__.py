"""Trained policies outside of training: an agent acts on what an env gives, with its transforms inside."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return nothing: a config names none of this; it adds commands, and lends `rlcore` what loads agents."""
    return []
