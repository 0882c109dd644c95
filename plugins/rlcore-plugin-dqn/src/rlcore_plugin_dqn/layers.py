"""Linear layers, plain or noisy, and an MLP of them with duelling streams, noisy layers, or both."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

import torch
from rlcore_plugin_mlp.network import ACTIVATIONS, Activation, Initialisation, initialise
from rlcore_plugin_mlp.unfilled import unfilled
from torch import Tensor, nn

# a layer as a function of inputs and noise; without noise it uses the means of its weights
Applied: TypeAlias = Callable[[Tensor, Tensor | None], Tensor]
_HIDDEN_GAIN: Final = math.sqrt(2)


class PlainLinear(nn.Linear):
    """Linear layer with the arguments of a noisy one; it ignores noise.

    Attributes:
        noise_size: 0.
    """

    noise_size = 0

    def forward(self, inputs: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return `[..., outputs]` of `[..., inputs]`."""
        return super().forward(inputs)

    def raw(self) -> Applied:
        """Return `forward` for `[row, inputs]` without gradients, over views of the weights in their memory."""
        weight, bias = self.weight.detach().t(), self.bias.detach()
        return lambda inputs, _: torch.addmm(bias, inputs, weight)


class NoisyLinear(PlainLinear):
    """Linear layer with a learnt deviation of each weight and bias: `mean + sigma * noise`.

    Factorised Gaussian noise (Fortunato et al., 2018, arXiv 1706.10295, equations 9 to 11): the noise of a weight is
    that of its input times that of its output, `f(x) = sgn(x) sqrt(|x|)` of standard normal numbers.

    Args:
        inputs: of the layer.
        outputs: of the layer.
        sigma: initial deviation, times the root of the number of inputs.

    Attributes:
        noise_size: length of its noise: a number for each input, then one for each output.
    """

    def __init__(self, inputs: int, outputs: int, sigma: float) -> None:
        super().__init__(inputs, outputs)
        self.noise_size = inputs + outputs
        self._sigma = sigma / math.sqrt(inputs)
        self.weight_sigma = nn.Parameter(torch.empty(outputs, inputs))
        self.bias_sigma = nn.Parameter(torch.empty(outputs))

    @torch.no_grad()
    def reset_sigma(self) -> None:
        """Set every deviation to its initial value."""
        self.weight_sigma.fill_(self._sigma)
        self.bias_sigma.fill_(self._sigma)

    def forward(self, inputs: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return `[..., outputs]` of `[..., inputs]`.

        Args:
            inputs: `[..., inputs]`.
            noise: `[noise_size]` for all rows, or `[..., noise_size]` for each row; None for the means.
        """
        if noise is None:
            return super().forward(inputs)
        entering, leaving = torch.split(noise, [self.in_features, self.out_features], -1)
        if noise.ndim == 1:  # one noise for all rows: one matrix of weights, and one product
            weight = torch.addcmul(self.weight, self.weight_sigma, torch.outer(leaving, entering))
            return nn.functional.linear(inputs, weight, torch.addcmul(self.bias, self.bias_sigma, leaving))
        deviation = nn.functional.linear(inputs * entering, self.weight_sigma, self.bias_sigma)
        return torch.addcmul(super().forward(inputs), leaving, deviation)

    def raw(self) -> Applied:
        """Return `forward` for `[row, inputs]` without gradients, over views of the weights in their memory."""
        sizes = [self.in_features, self.out_features]
        mean, sigma, bias = super().raw(), self.weight_sigma.detach().t(), self.bias_sigma.detach()

        def applied(inputs: Tensor, noise: Tensor | None) -> Tensor:
            if noise is None:
                return mean(inputs, None)
            entering, leaving = torch.split(noise, sizes, -1)
            return torch.addcmul(mean(inputs, None), leaving, torch.addmm(bias, inputs * entering, sigma))

        return applied


def factorised(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Return the noise `sgn(x) sqrt(|x|)` of standard normal numbers, float32 `[*shape]`."""
    normal = torch.randn(*shape, generator=generator, device=generator.device)
    return normal.sign() * normal.abs_().sqrt_()


class StreamedMLP(nn.Module):
    """MLP from observations to `outputs` numbers for each action, with one or two streams.

    With `duelling` the layers from the last hidden one on are there twice, for the value of the state and for the
    advantages of the actions: `value + advantage - mean advantage` (Wang et al., 2016, arXiv 1511.06581, equation 9).

    Args:
        sizes: inputs and hidden sizes.
        num_actions: how many actions.
        outputs: numbers for each action: 1, or the size of a distribution.
        activation: between the layers.
        initialisation: of weights and biases, as of an MLP; orthogonal with a gain of 1 in the last layers.
        duelling: whether there are two streams.
        sigma: of the noise of each layer, see `NoisyLinear`; None for plain layers.
        casts: whether observations are of another dtype than float32.
        generator: samples the weights.

    Attributes:
        noise_size: length of the noise of all layers together; 0 without noisy layers.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        num_actions: int,
        outputs: int,
        *,
        activation: Activation,
        initialisation: Initialisation,
        duelling: bool,
        sigma: float | None,
        casts: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self._num_actions = num_actions
        self._activate = ACTIVATIONS[activation]
        self._casts = casts

        def layers(*widths: int, last: bool) -> nn.ModuleList:
            modules = nn.ModuleList(_layer(*pair, sigma) for pair in pairwise(widths))
            for layer in modules:
                initialise(layer, initialisation, 1.0 if last and layer is modules[-1] else _HIDDEN_GAIN, generator)
                if isinstance(layer, NoisyLinear):
                    layer.reset_sigma()
            return modules

        shared = max(1, len(sizes) - 1) if duelling else len(sizes)
        of_stream = sizes[shared - 1 :]
        self.body = layers(*sizes[:shared], last=False)
        self.value = layers(*of_stream, outputs, last=True) if duelling else nn.ModuleList()
        self.advantage = layers(*of_stream, num_actions * outputs, last=True)
        self._noise_sizes = [layer.noise_size for stream in self._streams() for layer in stream]
        self.noise_size = sum(self._noise_sizes)

    def forward(self, observation: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return `[..., action * outputs]` of observations `[..., inputs]`.

        Args:
            observation: `[..., inputs]`.
            noise: of all layers, `[noise_size]` or `[..., noise_size]`; None for the means.
        """
        return self._through(self._streams(), observation, noise)

    def raw(self) -> Callable[..., Tensor]:
        """Return `forward` for `[row, inputs]` without gradients, over views of the weights in their memory."""
        streams = [[layer.raw() for layer in stream] for stream in self._streams()]
        return lambda observation, noise=None: self._through(streams, observation, noise)

    def _streams(self) -> list[list[Any]]:
        return [[*self.body], [*self.value], [*self.advantage]]

    def _through(self, streams: Sequence[Sequence[Applied]], inputs: Tensor, noise: Tensor | None) -> Tensor:
        body, value, advantage = streams
        noises = [None] * len(self._noise_sizes) if noise is None else torch.split(noise, self._noise_sizes, -1)
        hidden = inputs.float() if self._casts else inputs
        shared, apart = len(body), len(body) + len(value)
        for layer, part in zip(body, noises[:shared], strict=True):
            hidden = self._activate(layer(hidden, part))
        advantages = self._stream(advantage, hidden, noises[apart:])
        if not value:
            return advantages
        state = self._stream(value, hidden, noises[shared:apart])
        by_action = advantages.view(
            *advantages.shape[:-1], self._num_actions, advantages.shape[-1] // self._num_actions
        )
        return (by_action + (state.unsqueeze(-2) - by_action.mean(-2, keepdim=True))).flatten(-2)

    def _stream(self, layers: Sequence[Applied], hidden: Tensor, noises: Sequence[Tensor | None]) -> Tensor:
        for index, (layer, part) in enumerate(zip(layers, noises, strict=True)):
            hidden = layer(self._activate(hidden) if index else hidden, part)
        return hidden


def _layer(inputs: int, outputs: int, sigma: float | None) -> PlainLinear:
    return unfilled(lambda: PlainLinear(inputs, outputs) if sigma is None else NoisyLinear(inputs, outputs, sigma))
