"""rlcore for coding assistants: a skill that answers thirty questions, and a server of the Model Context Protocol."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return nothing: a config names none of this; it adds commands."""
    return []
