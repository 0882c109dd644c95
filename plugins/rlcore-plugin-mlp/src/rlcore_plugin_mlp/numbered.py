"""Distributions over numbered actions beyond one choice from 0 on: another first number, several choices, bits."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore_plugin_mlp.distributions import Categorical
from rlcore_plugin_mlp.leaves import NEVER


class ShiftedCategorical(Categorical):
    """Actions `start` to `start + n - 1`; the parameters are logits.

    Args:
        num_actions: how many.
        start: the first one.
    """

    def __init__(self, num_actions: int, start: int) -> None:
        super().__init__(num_actions)
        self._start = start

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return actions `[...]`, int64."""
        return super().sample(parameters, noise) + self._start

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the likeliest actions `[...]`, int64."""
        return super().mode(parameters) + self._start

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        return super().log_prob(parameters, action - self._start)

    def log_prob_and_entropy(self, parameters: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return both, each `[..., 1]`."""
        if torch.compiler.is_compiling() or not parameters.requires_grad:
            return self.log_prob(parameters, action), self.entropy(parameters)
        return super().log_prob_and_entropy(parameters, action - self._start)


class MultiCategorical:
    """Several independent choices, each from numbers of its own; the parameters are the logits of all, in their order.

    Args:
        sizes: how many actions each choice has.
        starts: the first number of each; 0 for all when left out.
        shape: of an action; one dimension when left out.
        dtype: of actions.
        device: of the parameters.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        starts: Sequence[int] | None = None,
        shape: tuple[int, ...] | None = None,
        dtype: torch.dtype = torch.int64,
        device: torch.device | None = None,
    ) -> None:
        self.num_parameters = sum(sizes)
        self._choices, self._most = len(sizes), max(sizes)
        self._shape = (len(sizes),) if shape is None else shape
        self._dtype = dtype
        self._starts: Tensor | None = None
        if starts is not None and any(starts):
            self._starts = torch.tensor(starts, dtype=torch.int64, device=device)
        self._places: Tensor | None = None  # of the logits among rows of equal length
        if min(sizes) < self._most:
            places = [index * self._most + number for index, size in enumerate(sizes) for number in range(size)]
            self._places = torch.tensor(places, device=device)

    def noise(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Sample Gumbel noise `[*shape, logit]` (Gumbel-max trick)."""
        exponential = torch.empty(*shape, self.num_parameters, device=generator.device)
        return exponential.exponential_(generator=generator).log_().neg_()

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return actions `[..., *action]`."""
        return self.mode(parameters + noise)

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the likeliest actions `[..., *action]`."""
        action = self._logits(parameters).argmax(-1)
        if self._starts is not None:
            action = action + self._starts
        return action.reshape(*action.shape[:-1], *self._shape).to(self._dtype)

    def mean(self, parameters: Tensor) -> Tensor:
        """Refuse: the mean of numbered actions is no action.

        Raises:
            ConfigError: always.
        """
        raise _no_mean()

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        return self._chosen(torch.log_softmax(self._logits(parameters), -1), action)

    def entropy(self, parameters: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        return _entropy(torch.log_softmax(self._logits(parameters), -1))

    def log_prob_and_entropy(self, parameters: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return both, each `[..., 1]`, for the price of one."""
        log_probs = torch.log_softmax(self._logits(parameters), -1)
        return self._chosen(log_probs, action), _entropy(log_probs)

    def _logits(self, parameters: Tensor) -> Tensor:
        """Return the logits `[..., choice, number]`; a choice of fewer numbers than another never takes the rest."""
        before = parameters.shape[:-1]
        if self._places is not None:
            empty = parameters.new_full((*before, self._choices * self._most), NEVER)
            parameters = empty.index_copy(-1, self._places, parameters)
        return parameters.reshape(*before, self._choices, self._most)

    def _chosen(self, log_probs: Tensor, action: Tensor) -> Tensor:
        index = action.reshape(*log_probs.shape[:-1]).to(torch.int64)
        if self._starts is not None:
            index = index - self._starts
        return log_probs.gather(-1, index.unsqueeze(-1)).squeeze(-1).sum(-1, keepdim=True)


class Bernoulli:
    """Independent bits; the parameters are the logits of a 1.

    Args:
        shape: of an action.
        dtype: of actions.
    """

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype = torch.int8) -> None:
        self.num_parameters = torch.Size(shape).numel()
        self._shape = shape
        self._dtype = dtype

    def noise(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Sample logistic noise `[*shape, bit]`."""
        uniform = torch.empty(*shape, self.num_parameters, device=generator.device)
        return uniform.uniform_(generator=generator).clamp_(1e-7, 1 - 1e-7).logit_()

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return actions `[..., *action]`, 0 or 1."""
        return self.mode(parameters + noise)

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the likeliest actions `[..., *action]`, 0 or 1."""
        return (parameters > 0).reshape(*parameters.shape[:-1], *self._shape).to(self._dtype)

    def mean(self, parameters: Tensor) -> Tensor:
        """Refuse: the mean of bits is no action.

        Raises:
            ConfigError: always.
        """
        raise _no_mean()

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        signs = 2 * action.reshape(parameters.shape).to(parameters.dtype) - 1
        return torch.nn.functional.logsigmoid(signs * parameters).sum(-1, keepdim=True)

    def entropy(self, parameters: Tensor) -> Tensor:
        """Return `[..., 1]`: of each bit `softplus(x) - x sigmoid(x)`."""
        entropies = torch.nn.functional.softplus(parameters) - parameters * parameters.sigmoid()
        return entropies.sum(-1, keepdim=True)

    def log_prob_and_entropy(self, parameters: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return both, each `[..., 1]`."""
        return self.log_prob(parameters, action), self.entropy(parameters)


def _entropy(log_probs: Tensor) -> Tensor:
    return (log_probs.exp() * log_probs).sum((-2, -1)).neg().unsqueeze(-1)


def _no_mean() -> ConfigError:
    return ConfigError("discrete actions have no mean; use ExplorationType.DETERMINISTIC, which takes the likeliest")
