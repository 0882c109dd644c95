"""The hook that shows the normalisers of a model what was observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlcore import hookimpl

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import Group
    from rlcore_plugin_rsl_rl.model import RslRlModel


class Normalizing:
    """Shows each batch to the normalisers after its updates, as rsl_rl does.

    Args:
        model: has the normalisers, which are saved with it.
        group: the ranks that train together.

    Attributes:
        internal: True; the hook is a part of the loss.
        takes_columns: True; it reads one entry.
    """

    internal: Final = True
    takes_columns: Final = True

    def __init__(self, model: RslRlModel, group: Group) -> None:
        self._model = model
        self._group = group

    @hookimpl
    def post_steps(self, batch: TensorDict) -> None:
        """Show the observations of the batch."""
        self._model.update_normalization(batch.get("observation").flatten(0, 1), self._group)
