"""The layers of a batched network: linear maps, and norms before or behind them.

Inputs are `[copy, sample, feature]`: several networks of one shape run as one, each copy with weights of its own. A
layer reads its parameters through a function `take`, which gives them with gradients or without.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

import torch
from rlcore_plugin_sac.norms import Take
from torch import Tensor, nn

from rlcore_plugin_flashsac.batch import Statistics
from rlcore_plugin_flashsac.bounds import Bound, joint_to_root, to_unit

Norm = Literal["batch", "layer", "rms", "none"]
NormLayer: TypeAlias = Callable[[Tensor, Take, Statistics], Tensor]
BATCH_EPS = 1e-5
RMS_EPS = 1e-6


class BatchedMap(nn.Module):
    """A linear map for each copy, `[copy, sample, inputs]` to `[copy, sample, outputs]`.

    Weights begin orthogonal, biases at zero.

    Args:
        copies: how many networks.
        inputs: of each.
        outputs: of each.
        bias: whether something is added.
        generator: samples the weights.
    """

    def __init__(self, copies: int, inputs: int, outputs: int, bias: bool, generator: torch.Generator) -> None:
        super().__init__()
        weight = torch.empty(copies, inputs, outputs)
        for each in weight:
            nn.init.orthogonal_(each, generator=generator)
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.zeros(copies, 1, outputs)) if bias else None

    def forward(self, inputs: Tensor, take: Take) -> Tensor:
        """Return the outputs."""
        weight = take(self.weight)
        if self.bias is None:
            return torch.bmm(inputs, weight)
        return torch.baddbmm(take(self.bias), inputs, weight)

    def bounds(self) -> Iterator[Bound]:
        """Yield the bound of the weights: those of each output are a vector of length 1."""
        yield Bound(self, ("weight",), to_unit)


class BatchNorm(nn.Module):
    """Normalises each feature over the samples (Ioffe and Szegedy, 2015, arXiv 1502.03167, algorithm 1).

    The running variance is that of the unbiased estimate, as torch's own batch normalisation keeps it.

    Args:
        copies: how many networks.
        features: of each.
        momentum: how far a batch moves the running statistics.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, copies: int, features: int, momentum: float) -> None:
        super().__init__()
        shape = (copies, 1, features)
        self._momentum = momentum
        self.scale = nn.Parameter(torch.ones(shape))
        self.shift = nn.Parameter(torch.zeros(shape))
        self.register_buffer("running_mean", torch.zeros(shape))
        self.register_buffer("running_var", torch.ones(shape))

    def forward(self, inputs: Tensor, take: Take, statistics: Statistics) -> Tensor:
        """Return normalised inputs; of a single sample, which has no deviation, by the running statistics."""
        scale, shift = take(self.scale), take(self.shift)
        samples = inputs.shape[-2]
        if statistics is Statistics.RUNNING or samples < 2:
            slope = (self.running_var + BATCH_EPS).rsqrt() * scale
            return torch.addcmul(shift - self.running_mean * slope, inputs, slope)
        normalise = _as_formula if torch.compiler.is_compiling() else _by_kernel
        outputs, mean, variance = normalise(inputs, scale, shift)
        if statistics is Statistics.MOVED:
            self._move(mean.detach(), variance.detach() * (samples / (samples - 1)))
        return outputs

    def bounds(self) -> Iterator[Bound]:
        """Yield the bound of scale and shift together."""
        yield Bound(self, ("scale", "shift"), joint_to_root)

    @torch.no_grad()
    def _move(self, mean: Tensor, variance: Tensor) -> None:
        self.running_mean.lerp_(mean, self._momentum)
        self.running_var.lerp_(variance, self._momentum)


def _as_formula(inputs: Tensor, scale: Tensor, shift: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return normalised inputs, the means and the variances `[copy, 1, feature]`; the compiler makes few loops of it.

    Args:
        inputs: `[copy, sample, feature]`.
        scale: `[copy, 1, feature]`.
        shift: `[copy, 1, feature]`.
    """
    mean = inputs.mean(-2, keepdim=True)
    centred = inputs - mean
    variance = centred.square().mean(-2, keepdim=True)
    return torch.addcmul(shift, centred, (variance + BATCH_EPS).rsqrt() * scale), mean, variance


def _by_kernel(inputs: Tensor, scale: Tensor, shift: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return what `_as_formula` does, by torch's kernel: eager, it takes a third of the time."""
    each = [
        torch.native_batch_norm(rows, weight[0], bias[0], None, None, True, 0.0, BATCH_EPS)
        for rows, weight, bias in zip(inputs.unbind(0), scale.unbind(0), shift.unbind(0), strict=True)
    ]
    outputs, means, slopes = (torch.stack(several) for several in zip(*each, strict=True))
    return outputs, means.unsqueeze(1), (slopes.square().reciprocal() - BATCH_EPS).unsqueeze(1)


class LayerNorm(nn.Module):
    """Normalises each sample over its features (Ba et al., 2016, arXiv 1607.06450).

    Args:
        copies: how many networks.
        features: of each.
    """

    def __init__(self, copies: int, features: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(copies, 1, features))
        self.shift = nn.Parameter(torch.zeros(copies, 1, features))

    def forward(self, inputs: Tensor, take: Take, statistics: Statistics) -> Tensor:
        """Return normalised inputs."""
        normal = nn.functional.layer_norm(inputs, inputs.shape[-1:])
        return torch.addcmul(take(self.shift), normal, take(self.scale))

    def bounds(self) -> Iterator[Bound]:
        """Yield the bound of scale and shift together."""
        yield Bound(self, ("scale", "shift"), joint_to_root)


class RMSNorm(nn.Module):
    """Divides each sample by the root of the mean square of its features (Zhang and Sennrich, 2019, arXiv 1910.07467).

    Args:
        copies: how many networks.
        features: of each.
    """

    def __init__(self, copies: int, features: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(copies, 1, features))

    def forward(self, inputs: Tensor, take: Take, statistics: Statistics) -> Tensor:
        """Return normalised inputs."""
        return nn.functional.rms_norm(inputs, inputs.shape[-1:], eps=RMS_EPS) * take(self.scale)

    def bounds(self) -> Iterator[Bound]:
        """Yield the bound of the scale."""
        yield Bound(self, ("scale",), joint_to_root)


class Scaler(nn.Module):
    """Multiplies each feature by a learnt number, as SimbaV2 has it (arXiv 2502.15280).

    The parameter begins at `stored` and counts `initial / stored` times, which sets how fast the number is learnt.

    Args:
        copies: how many networks.
        features: of each.
        initial: of the number.
        stored: of the parameter.
    """

    def __init__(self, copies: int, features: int, initial: float, stored: float) -> None:
        super().__init__()
        self._factor = initial / stored
        self.scale = nn.Parameter(torch.full((copies, 1, features), stored))

    def forward(self, inputs: Tensor, take: Take) -> Tensor:
        """Return the products."""
        return inputs * (take(self.scale) * self._factor)


def unit(inputs: Tensor) -> Tensor:
    """Return each sample divided by its length, `[..., feature]`: a point of the unit sphere."""
    return nn.functional.normalize(inputs, dim=-1, eps=1e-8)


def norm_layer(norm: Norm, copies: int, features: int, momentum: float) -> nn.Module | None:
    """Return the norm of a name; None for `none`."""
    if norm == "batch":
        return BatchNorm(copies, features, momentum)
    if norm == "layer":
        return LayerNorm(copies, features)
    return RMSNorm(copies, features) if norm == "rms" else None


def he_scale(features: int) -> float:
    """Return the root of 2 over the number of features, with which scalers begin."""
    return math.sqrt(2 / features)
