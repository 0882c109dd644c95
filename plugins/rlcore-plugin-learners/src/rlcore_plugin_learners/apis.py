"""What modules say that they can compute, for the learners that ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from torch import Tensor, nn

Batch = Mapping[str, Any]

TARGET_NETWORK_ACTION_DIST_INPUTS: Final = "target_network_action_dist_inputs"


class ValueFunctionAPI:
    """Says that a module has a critic: `compute_values`."""

    def compute_values(self, batch: Batch, embeddings: Any = None) -> Tensor:
        """Return the value of each row, `[row]`.

        Args:
            batch: columns.
            embeddings: what the forward pass returned under that name, or None.
        """
        raise NotImplementedError(f"{type(self).__name__} has no compute_values")


class QNetAPI:
    """Says that a module has values of actions: `compute_q_values`."""

    def compute_q_values(self, batch: Batch) -> Any:
        """Return the values of actions.

        Args:
            batch: columns, with `obs`; where actions are no numbers of a choice, also `actions`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no compute_q_values")


class TargetNetworkAPI:
    """Says that a module has copies of networks, which a learner moves after its steps."""

    def make_target_networks(self) -> None:
        """Make the copies, equal to their networks; a learner calls it once, when it is built."""
        raise NotImplementedError(f"{type(self).__name__} has no make_target_networks")

    def get_target_network_pairs(self) -> list[tuple[nn.Module, nn.Module]]:
        """Return each network and its copy."""
        raise NotImplementedError(f"{type(self).__name__} has no get_target_network_pairs")

    def forward_target(self, batch: Batch) -> Any:
        """Return what the copies compute of the columns of a batch."""
        raise NotImplementedError(f"{type(self).__name__} has no forward_target")
