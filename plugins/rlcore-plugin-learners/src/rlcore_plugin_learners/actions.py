"""Distributions over actions by the names that RLlib's have, over those of a model of rlcore."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlcore.types import Distribution


class ActionDistribution:
    """Distributions over actions, one for each row.

    Args:
        family: of rlcore.
        parameters: `[row, num_parameters]`.
    """

    def __init__(self, family: Distribution, parameters: Tensor) -> None:
        self._family = family
        self.parameters = parameters

    def logp(self, actions: Tensor) -> Tensor:
        """Return the log-probability of each row's action, `[row]`."""
        return self._family.log_prob(self.parameters, actions).squeeze(-1)

    def entropy(self) -> Tensor:
        """Return the entropy of each row, `[row]`."""
        return self._family.entropy(self.parameters).squeeze(-1)

    def logp_and_entropy(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return both, `[row]`; they share most of their work."""
        logp, entropy = self._family.log_prob_and_entropy(self.parameters, actions)
        return logp.squeeze(-1), entropy.squeeze(-1)

    def sample(self, generator: torch.Generator) -> Tensor:
        """Return an action for each row, `[row, *action]`.

        Args:
            generator: on the device of the parameters; the only source of randomness.
        """
        noise = self._family.noise(tuple(self.parameters.shape[:-1]), generator)
        return self._family.sample(self.parameters, noise)

    def mode(self) -> Tensor:
        """Return the likeliest action of each row."""
        return self._family.mode(self.parameters)


class ActionDistributions:
    """A family of distributions, for `from_logits`; what `get_train_action_dist_cls` returns.

    Args:
        family: of rlcore, as an actor has one.
    """

    def __init__(self, family: Any) -> None:
        self.family: Distribution = family

    def from_logits(self, logits: Tensor) -> ActionDistribution:
        """Return the distributions that parameters `[row, num_parameters]` pick."""
        return ActionDistribution(self.family, logits)

    def required_input_dim(self) -> int:
        """Return how many parameters a row has."""
        return self.family.num_parameters
