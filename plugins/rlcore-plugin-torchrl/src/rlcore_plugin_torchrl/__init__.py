"""Named trainers in the manner of TorchRL's, and builders of the parts of a training loop from flat settings."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return nothing: scripts import all of it from `rlcore.algorithms` and `rlcore.helpers`."""
    return []
