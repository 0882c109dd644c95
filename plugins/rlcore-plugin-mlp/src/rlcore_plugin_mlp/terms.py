"""Log-probability and entropy together as one node of the autograd graph, with gradients worked out by hand.

For the small tensors of a minibatch, autograd's own nodes cost several times what their arithmetic costs. Compiled code
needs none of this; it uses the formulas in `distributions.py`, and the tests hold the two against each other.
"""

from __future__ import annotations

import math
from typing import Any, Final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

HALF_LOG_TWO_PI: Final = 0.5 * math.log(2 * math.pi)
SMALLEST_SCALE: Final = 1e-4


def one_node_pays(parameters: Tensor) -> bool:
    """Return whether gradients are wanted outside of compiled code."""
    return parameters.requires_grad and not torch.compiler.is_compiling()


def log_slope_of_tanh(inner: Tensor) -> Tensor:
    """Return log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2x)), which does not overflow."""
    return 2 * (math.log(2) - inner - torch.nn.functional.softplus(-2 * inner))


class CategoricalTerms(torch.autograd.Function):
    """Logits `[..., n]` and actions `[..., 1]` to log-probability and entropy, each `[..., 1]`."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Compute both."""
        log_probs = torch.log_softmax(logits, -1)
        probs = log_probs.exp()
        entropy = (probs * log_probs).sum(-1, keepdim=True).neg_()
        ctx.save_for_backward(log_probs, probs, entropy, action)
        return log_probs.gather(-1, action), entropy

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Use d log p(a) / d logits = onehot(a) - p and dH / d logits = -p (log p + H)."""
        of_log_prob, of_entropy = gradients
        log_probs, probs, entropy, action = ctx.saved_tensors
        result = (log_probs + entropy).mul_(of_entropy).add_(of_log_prob).mul_(probs).neg_()
        return result.scatter_add_(-1, action, of_log_prob), None


class TanhNormalTerms(torch.autograd.Function):
    """Parameters `[..., 2 a]` and unsquashed actions `[..., a]` to two terms, each `[..., 1]`.

    The first is the log-probability of the normal distribution, the second the entropy of the squashed one without the
    scale of the bounds: the expectation of the log slope is a quadrature with the given nodes and weights.
    """

    @staticmethod
    def forward(ctx: Any, parameters: Tensor, inner: Tensor, nodes: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Compute both."""
        loc, raw = torch.split(parameters, inner.shape[-1], -1)
        scale = torch.nn.functional.softplus(raw).add_(SMALLEST_SCALE)
        standard = (inner - loc).div_(scale)
        log_scale = scale.log().add_(HALF_LOG_TWO_PI)
        log_prob = torch.addcmul(log_scale, standard, standard, value=0.5).sum(-1, keepdim=True).neg_()
        points = torch.addcmul(loc.unsqueeze(-1), scale.unsqueeze(-1), nodes)
        expected = log_slope_of_tanh(points) @ weights
        ctx.save_for_backward(raw, scale, standard, points, nodes, weights)
        return log_prob, log_scale.add_(expected).add_(0.5).sum(-1, keepdim=True)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        """Use d log_slope / dx = -2 tanh x."""
        of_log_prob, of_entropy = gradients
        raw, scale, standard, points, nodes, weights = ctx.saved_tensors
        slopes = points.tanh() @ torch.stack([weights, weights * nodes], -1).mul_(-2)
        of_loc = of_log_prob * standard / scale + of_entropy * slopes[..., 0]
        of_scale = (of_log_prob * (standard * standard - 1) + of_entropy) / scale + of_entropy * slopes[..., 1]
        return torch.cat([of_loc, of_scale * raw.sigmoid()], -1), None, None, None
