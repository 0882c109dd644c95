"""Categorical distributions with a share of the uniform one, as latents and as discrete actions have them."""

from __future__ import annotations

import torch
from torch import Tensor


def mixed(logits: Tensor, unimix: float) -> Tensor:
    """Return log-probabilities `[..., class]`: see `probabilities`."""
    return probabilities(logits, unimix).log() if unimix else logits.log_softmax(-1)


def probabilities(logits: Tensor, unimix: float) -> Tensor:
    """Return probabilities `[..., class]`, `(1 - unimix) softmax + unimix / classes`.

    Args:
        logits: `[..., class]`.
        unimix: the share of the uniform distribution.
    """
    return logits.softmax(-1) * (1 - unimix) + unimix / logits.shape[-1]


def sample(probs: Tensor, uniform: Tensor) -> Tensor:
    """Return classes `[...]`, int64, by the inverse of the cumulative distribution.

    Args:
        probs: `[..., class]`, which sum to about 1.
        uniform: numbers in [0, 1), `[...]`.
    """
    steps = probs.cumsum(-1)
    # the last step is 1 but for rounding; compared with it, a number near 1 has a class too
    below = steps[..., :-1] <= uniform.unsqueeze(-1) * steps[..., -1:]
    return below.sum(-1)


def straight_through(index: Tensor, probs: Tensor) -> Tensor:
    """Return one-hot vectors `[..., class]` of classes `[...]`, whose gradient is that of the probabilities."""
    hot = one_hot(index, probs.shape[-1]).to(probs.dtype)
    return hot + (probs - probs.detach())


def one_hot(index: Tensor, classes: int) -> Tensor:
    """Return one-hot vectors `[..., class]` of classes `[...]`, bool; a number outside gives zeros alone."""
    return index.unsqueeze(-1) == torch.arange(classes, device=index.device)


def divergence(log_probs: Tensor, others: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence of one distribution from another, summed over latents, `[...]`.

    Args:
        log_probs: `[..., latent, class]`.
        others: likewise.
    """
    return (log_probs.exp() * (log_probs - others)).sum((-2, -1))


def entropy(log_probs: Tensor) -> Tensor:
    """Return the entropy, `[...]`."""
    return -(log_probs.exp() * log_probs).sum(-1)
