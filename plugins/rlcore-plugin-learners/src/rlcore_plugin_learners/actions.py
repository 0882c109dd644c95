"""Distributions over actions by the names that RLlib's have, over those of a model of rlcore."""

from __future__ import annotations

from typing import Any

import torch
from rlcore_plugin_mlp.distributions import Categorical, Normal
from rlcore_plugin_mlp.numbered import Bernoulli, MultiCategorical
from torch import Tensor

from rlcore.errors import NotSupportedError
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

    def kl(self, other: ActionDistribution) -> Tensor:
        """Return the Kullback-Leibler divergence of another distribution from this one for each row, `[row]`.

        Raises:
            NotSupportedError: the family has no closed form.
        """
        return distance(self._family, self.parameters, other.parameters)

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


def distance(family: Distribution, first: Tensor, second: Tensor) -> Tensor:
    """Return the divergence of the second distribution from the first, `[row]`; squashing both leaves it as it is.

    Args:
        family: of rlcore.
        first: parameters `[row, num_parameters]`.
        second: likewise.

    Raises:
        NotSupportedError: the family has no closed form.
    """
    between = torch.distributions.kl_divergence
    if isinstance(family, Normal):
        normals = [torch.distributions.Normal(*family._loc_scale(p), validate_args=False) for p in (first, second)]
        return between(*normals).sum(-1)
    if isinstance(family, Bernoulli):
        bits = [torch.distributions.Bernoulli(logits=p, validate_args=False) for p in (first, second)]
        return between(*bits).sum(-1)
    if isinstance(family, MultiCategorical):
        first, second = family._logits(first), family._logits(second)
        return _between_choices(first, second).sum(-1)
    if isinstance(family, Categorical):
        return _between_choices(first, second)
    raise NotSupportedError(
        f"{type(family).__name__} has no closed form of the divergence; leave action_dist_inputs out of the batch, "
        "which lets PPO estimate it from the actions"
    )


def _between_choices(first: Tensor, second: Tensor) -> Tensor:
    log_probs = torch.log_softmax(first, -1)
    return (log_probs.exp() * (log_probs - torch.log_softmax(second, -1))).sum(-1)


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
