"""Several policies in one run: each has its envs, its loss, its optimizers and its minibatches."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return nothing: the sections `[model.NAME]` of a config ask for it."""
    return []
