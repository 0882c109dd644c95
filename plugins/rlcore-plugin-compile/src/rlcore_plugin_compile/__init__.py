"""The update of a learner as one compiled graph, and losses computed side by side on several threads."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return nothing: the keys `compile` and `parallel` of a learner ask for it."""
    return []
