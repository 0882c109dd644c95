"""A multilayer perceptron (MLP), and its forward pass without gradients for single steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

from rlcore.envs import observation_dtype
from rlcore_plugin_mlp.unfilled import unfilled

Activation = Literal["tanh", "relu", "silu"]
Initialisation = Literal["torch", "orthogonal"]

ACTIVATIONS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "silu": nn.functional.silu,
}


_MANY: Final = 2048


def _tanh_(inputs: Tensor) -> Tensor:
    return _without_gradient("tanh", inputs)


# in place, for what no one else has
_IN_PLACE: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "tanh": _tanh_,
    "relu": torch.relu_,
    "silu": partial(nn.functional.silu, inplace=True),
}


def _without_gradient(name: str, inputs: Tensor) -> Tensor:
    """Apply an activation in place, where no gradient is wanted.

    On a CPU tanh goes through the sigmoid, whose kernel takes a third of the time; the difference is below 2e-7.
    """
    if name == "tanh" and inputs.device.type == "cpu" and inputs.numel() >= _MANY:
        return inputs.mul_(2).sigmoid_().mul_(2).sub_(1)
    return ACTIVATIONS[name](inputs)


class _Views:
    """The weights of a layer as `torch.addmm` takes them, without gradients.

    Args:
        layer: whose memory they view.
    """

    __slots__ = ("bias", "weight")

    def __init__(self, layer: nn.Linear) -> None:
        self.weight = layer.weight.detach().t()
        self.bias = layer.bias.detach()

    def are_of(self, layer: nn.Linear) -> bool:
        """Return whether the weights of a layer still lie there: they may have been moved or replaced."""
        own = layer._parameters  # the attributes cost a search each; a weight that is computed is not among them
        weight, bias = own.get("weight"), own.get("bias")
        if weight is None or bias is None or weight.data_ptr() != self.weight.data_ptr():
            return False
        return bias.data_ptr() == self.bias.data_ptr()


def _forward(
    activate: Callable[[Tensor], Tensor], hidden: list[tuple[Tensor, Tensor]], last: tuple[Tensor, Tensor], rows: Tensor
) -> Tensor:
    """Return the outputs for `[row, inputs]`: weights and biases of the hidden layers and of the last one."""
    for weight, bias in hidden:
        rows = activate(torch.addmm(bias, rows, weight))
    return torch.addmm(last[1], rows, last[0])


def _is_plain(layer: nn.Module) -> bool:
    """Return whether to call a layer is to multiply by its own weights: nobody watches, and nothing computes them."""
    return (
        type(layer) is nn.Linear
        and not layer._forward_hooks
        and not layer._forward_pre_hooks
        and type(layer._parameters.get("weight")) is type(layer._parameters.get("bias")) is nn.Parameter
    )


class MLP(nn.Module):
    """Linear layers with an activation between them: `[..., inputs]` to `[..., outputs]`.

    Args:
        sizes: inputs, hidden sizes, outputs.
        activation: between the layers.
        initialisation: `torch` for torch's default, `orthogonal` for orthogonal weights with gain sqrt(2) and zero
            biases (as in many PPO implementations).
        last_gain: orthogonal gain of the last layer.
        generator: samples the weights.
    """

    def __init__(
        self,
        sizes: list[int],
        activation: Activation,
        initialisation: Initialisation,
        last_gain: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self._activation = activation
        self._views: list[_Views] = []
        self._raw: Callable[[Tensor], Tensor] | None = None
        self.layers = unfilled(lambda: nn.ModuleList(nn.Linear(*pair) for pair in itertools.pairwise(sizes)))
        for index, layer in enumerate(self.layers):
            last = index == len(self.layers) - 1
            initialise(layer, initialisation, last_gain if last else math.sqrt(2), generator)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs of the last layer."""
        layers = self.layers._modules.values()
        if torch.is_grad_enabled() or torch.compiler.is_compiling():
            activate = ACTIVATIONS[self._activation]
        elif inputs.ndim == 2 and all(map(_is_plain, layers)):
            return MLP.raw(self)(inputs)  # by the same kernels
        else:
            activate = partial(_without_gradient, self._activation)
        *hidden, last = layers
        for layer in hidden:
            inputs = activate(layer(inputs))
        return last(inputs)  # type: ignore[no-any-return]

    def with_latent(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the last layer sees, and its outputs."""
        activate = ACTIVATIONS[self._activation]
        *hidden, last = self.layers._modules.values()
        latent = inputs.float()
        for layer in hidden:
            latent = activate(layer(latent))
        return latent, last(latent)

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return the forward pass for `[row, inputs]` over views of the weights as they lie in memory now.

        A row costs about half of what the modules cost. The views follow in-place updates, and are those of the call
        before while every weight lies where it lay.
        """
        # which kernel is faster follows from the number of rows, which an exported policy leaves open
        exporting = torch.compiler.is_compiling()
        layers = [layer for layer in self.layers._modules.values() if isinstance(layer, nn.Linear)]
        stays = len(layers) == len(self._views) and not exporting and all(map(_Views.are_of, self._views, layers))
        if stays and self._raw is not None:
            return self._raw
        views = [_Views(layer) for layer in layers]
        *hidden, last = [(view.weight, view.bias) for view in views]
        raw = partial(_forward, (ACTIVATIONS if exporting else _IN_PLACE)[self._activation], hidden, last)
        if not exporting:
            self._views, self._raw = views, raw
        return raw


class CastingMLP(MLP):
    """An MLP whose inputs are integers, truth values or floats of another width: they become floats here."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs of the last layer."""
        return super().forward(inputs.float())

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return the forward pass of `MLP.raw`, for inputs of any kind."""
        forward = super().raw()
        return lambda inputs: forward(inputs.float())


def mlp_for(space: gymnasium.Space[Any]) -> type[MLP]:
    """Return the MLP for observations of a space as batches hold them: one that casts only where it must."""
    return MLP if np.dtype(observation_dtype(space)) == np.float32 else CastingMLP


@torch.no_grad()
def initialise(layer: nn.Module, how: Initialisation, gain: float, generator: torch.Generator) -> None:
    """Set the weights and the bias of a linear layer, or of a convolution.

    Args:
        layer: to be set.
        how: torch's own way, uniform within one over the root of an output's inputs; or orthogonal, without a bias.
        gain: of orthogonal weights.
        generator: the only source of randomness.
    """
    assert isinstance(layer, nn.Linear | nn.Conv2d)
    assert layer.bias is not None
    if how == "orthogonal":
        nn.init.orthogonal_(layer.weight, gain, generator=generator)
        nn.init.zeros_(layer.bias)
    else:
        bound = 1 / math.sqrt(layer.weight[0].numel())
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.uniform_(-bound, bound, generator=generator)
