"""Layers of the networks: linear, layer norm, Mish or SimNorm; of one network, or of several that run as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, linear

Take = Callable[[Tensor], Tensor]
Activation = Callable[[Tensor], Tensor]

_SATURATED: Final = 20.0  # Mish is the identity from there on, and e^20 squared is far from the end of float32
_STD: Final = 0.02  # of the weights in the beginning


def whole(parameter: Tensor) -> Tensor:
    """Take a parameter of all members, as it is."""
    return parameter


def frozen(members: Tensor) -> Take:
    """Return what takes the part of some members, int64 `[member]`, without gradients."""
    return lambda parameter: parameter.detach().index_select(0, members)


def mish(inputs: Tensor) -> Tensor:
    """Return `x * tanh(softplus(x))` (Misra, 2019, arXiv 1908.08681).

    With `w = e^x` this is `x - 2 x / ((1 + w)^2 + 1)`. A policy computes it so, which takes a CPU less than half the
    time of torch's own, whose gradients the losses need.
    """
    if torch.compiler.is_compiling() or not inputs.is_cpu or not torch.is_inference_mode_enabled():
        return nn.functional.mish(inputs)
    part = inputs.clamp(max=_SATURATED).exp_().add_(1).square_().add_(1).reciprocal_()
    return torch.addcmul(inputs, inputs, part, value=-2)


class SimNorm:
    """Softmax over groups of features, so that each is a point of a simplex (Lavoie et al., 2022, arXiv 2204.00616).

    Args:
        size: features of a group.
    """

    def __init__(self, size: int) -> None:
        self._size = size

    def __call__(self, inputs: Tensor) -> Tensor:
        """Return the same shape `[..., feature]`."""
        groups = inputs.view(*inputs.shape[:-1], inputs.shape[-1] // self._size, self._size)
        if torch.compiler.is_compiling() or not inputs.is_cpu:
            return groups.softmax(-1).flatten(-2)
        # groups beside each other, over which torch works several at a time, where it takes short rows one by one
        columns = groups.reshape(-1, self._size).t().contiguous()
        return columns.softmax(0).t().reshape(inputs.shape)


class NormedLinear(nn.Module):
    """A linear map, layer norm over its outputs, and an activation; inputs `[..., inputs]`.

    Args:
        inputs: size of the last dimension.
        outputs: the same after it.
        activation: applied last.
        generator: samples the weights.
        rate: what the parameters are multiplied by when they are used; see `Network`.
    """

    def __init__(
        self, inputs: int, outputs: int, activation: Activation, generator: torch.Generator, rate: float = 1.0
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(_sampled((outputs, inputs), generator) / rate)
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.norm_weight = nn.Parameter(torch.full((outputs,), 1 / rate))
        self.norm_bias = nn.Parameter(torch.zeros(outputs))
        self._activation = activation
        self._rate = rate

    def forward(self, inputs: Tensor) -> Tensor:
        """Return `[..., outputs]`."""
        return self.after_product(linear(inputs, self._used(self.weight), self._used(self.bias)))

    def of_pair(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the outputs for inputs whose features are in two tensors, of which one may be broadcast."""
        of_left, of_right = torch.split(self._used(self.weight), [left.shape[-1], right.shape[-1]], -1)
        return self.after_product(linear(left, of_left, self._used(self.bias)) + linear(right, of_right))

    def after_product(self, product: Tensor) -> Tensor:
        """Normalise and activate what the linear map returned."""
        weight, bias = self._used(self.norm_weight), self._used(self.norm_bias)
        return self._activation(layer_norm(product, product.shape[-1:], weight, bias))

    def _used(self, parameter: Tensor) -> Tensor:
        return parameter if self._rate == 1 else parameter * self._rate


class Network(nn.Module):
    """Normalised layers, and a last one: with an activation another normalised one, else linear.

    With `rate` below 1 the parameters are stored divided by it. Adam, whose steps do not depend on the scale of
    gradients, then moves what is used at so much of its learning rate.

    Args:
        sizes: of the inputs, of the hidden layers, and of the outputs.
        generator: samples the weights.
        activation: of the last layer; None for a linear one.
        zero: whether a linear last layer begins with zeros.
        rate: as above.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        generator: torch.Generator,
        activation: Activation | None = None,
        zero: bool = False,
        rate: float = 1.0,
    ) -> None:
        super().__init__()
        *hidden, last = pairwise(sizes)
        layers: list[nn.Module] = [NormedLinear(*pair, mish, generator, rate) for pair in hidden]
        if activation is None:
            layers.append(_linear(*last, generator, zero))
        else:
            layers.append(NormedLinear(*last, activation, generator, rate))
        self.layers = nn.ModuleList(layers)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs `[..., outputs]` of inputs `[..., inputs]`."""
        for layer in self.layers:
            inputs = layer(inputs)
        return inputs

    def encode(self, observation: Tensor) -> Tensor:
        """Return the outputs for observations `[..., inputs]` of any dtype."""
        return self(observation.to(self.layers[0].weight.dtype))  # type: ignore[no-any-return,arg-type]

    def of_pair(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the outputs for inputs whose features are in two tensors, of which one may be broadcast."""
        first, *others = self.layers
        hidden: Tensor = first.of_pair(left, right)  # type: ignore[operator]
        for layer in others:
            hidden = layer(hidden)
        return hidden


class EnsembleLinear(nn.Module):
    """A linear map for each member of an ensemble, `[member, sample, inputs]` to `[member, sample, outputs]`.

    Args:
        members: how many.
        inputs: of each.
        outputs: of each.
        generator: samples the weights; None for zeros.
    """

    def __init__(self, members: int, inputs: int, outputs: int, generator: torch.Generator | None) -> None:
        super().__init__()
        shape = (members, inputs, outputs)
        self.weight = nn.Parameter(torch.zeros(shape) if generator is None else _sampled(shape, generator))
        self.bias = nn.Parameter(torch.zeros(members, 1, outputs))

    def forward(self, inputs: Tensor, take: Take) -> Tensor:
        """Return the outputs of the members that `take` leaves of a parameter."""
        return torch.baddbmm(take(self.bias), inputs, take(self.weight))


class EnsembleNorm(nn.Module):
    """Layer norm with a scale and a shift for each member, and Mish.

    Args:
        members: how many.
        features: of each.
    """

    def __init__(self, members: int, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(members, 1, features))
        self.bias = nn.Parameter(torch.zeros(members, 1, features))

    def forward(self, inputs: Tensor, take: Take) -> Tensor:
        """Return `[member, sample, feature]`."""
        normalised = layer_norm(inputs, inputs.shape[-1:])
        return mish(torch.addcmul(take(self.bias), normalised, take(self.weight)))


class Ensemble(nn.Module):
    """Networks of one shape, whose weights have a dimension of members; each last layer is linear, of zeros at first.

    Args:
        members: how many.
        sizes: of the inputs, of the hidden layers, and of the outputs.
        generator: samples the weights.

    Attributes:
        members: as given.
        first_hidden: size of the first hidden layer, whose values dropout may leave out.
    """

    def __init__(self, members: int, sizes: Sequence[int], generator: torch.Generator) -> None:
        super().__init__()
        self.members, self.first_hidden = members, sizes[1]
        *hidden, last = pairwise(sizes)
        self.layers = nn.ModuleList(EnsembleLinear(members, *pair, generator) for pair in hidden)
        self.norms = nn.ModuleList(EnsembleNorm(members, outputs) for _, outputs in hidden)
        self.last = EnsembleLinear(members, *last, None)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs `[member, sample, outputs]` of all members, for inputs `[sample, inputs]`."""
        return self.outputs(inputs, whole)

    def outputs(self, inputs: Tensor, take: Take, mask: Tensor | None = None) -> Tensor:
        """Return the outputs `[member, sample, outputs]`.

        Args:
            inputs: `[sample, inputs]` for all, or `[member, sample, inputs]`.
            take: says of which members, applied to each parameter `[member, ...]`.
            mask: what dropout leaves of the first hidden layer, `[member, sample, feature]` of 0 and `1 / (1 - rate)`.
        """
        hidden = inputs if inputs.ndim > 2 else inputs.expand(take(self.last.bias).shape[0], *inputs.shape)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            hidden = layer(hidden, take)
            if mask is not None:
                hidden, mask = hidden * mask, None
            hidden = norm(hidden, take)
        return self.last(hidden, take)  # type: ignore[no-any-return]


def _linear(inputs: int, outputs: int, generator: torch.Generator, zero: bool) -> nn.Linear:
    layer = nn.Linear(inputs, outputs, device="meta").to_empty(device="cpu")
    with torch.no_grad():
        layer.weight.copy_(torch.zeros(outputs, inputs) if zero else _sampled((outputs, inputs), generator))
        layer.bias.zero_()
    return layer


def _sampled(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return nn.init.trunc_normal_(torch.empty(shape), std=_STD, generator=generator)
