"""Learner and LearnerGroup in the manner of RLlib: gradient steps on batches that a script brings."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return nothing: a config names none of this, scripts import it from `rlcore`."""
    return []
