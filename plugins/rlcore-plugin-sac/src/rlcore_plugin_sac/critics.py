"""N critics as one network: every weight has a dimension of critics, and one batched product serves all of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Final

import torch
from rlcore_plugin_mlp.leaves import PackedEncoder
from rlcore_plugin_mlp.network import ACTIVATIONS, Activation, Initialisation
from torch import Tensor, nn

from rlcore_plugin_sac.box import ActionBox
from rlcore_plugin_sac.norms import Norm, Take, norm_layer

_FEW: Final = 4
_IN_PLACE: Final = {"tanh": torch.tanh_, "relu": torch.relu_}


def whole(parameter: Tensor) -> Tensor:
    """Take a parameter as it is."""
    return parameter


def frozen(parameter: Tensor) -> Tensor:
    """Take a parameter without gradients: an actor's loss moves no critic."""
    return parameter.detach()


def first(parameter: Tensor) -> Tensor:
    """Take the part of the first critic alone, without gradients."""
    return parameter[:1].detach()


def members(which: Tensor) -> Take:
    """Return what takes the part of some critics, int64 `[member]`."""
    return lambda parameter: parameter.index_select(0, which)


def by_sample(samples: int) -> Take:
    """Return what takes a parameter `[critic, 1, size]` once for each sample, `[critic, 1, sample, size]`.

    Its gradient is then summed over the numbers first and over the samples last. Compiled, a sum over all rows at once
    goes through memory column by column, which takes as long as a product.
    """
    return lambda parameter: parameter.expand(-1, samples, -1)[:, None]


class BatchedLinear(nn.Module):
    """A linear map for each critic: `[critic, sample, inputs]` to `[critic, sample, outputs]`.

    Args:
        critics: how many.
        inputs: of each.
        outputs: of each.
    """

    def __init__(self, critics: int, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(critics, inputs, outputs))
        self.bias = nn.Parameter(torch.empty(critics, 1, outputs))

    def forward(self, inputs: Tensor, take: Take) -> Tensor:
        """Return the outputs; inputs `[sample, inputs]` are the same for each critic."""
        weight = take(self.weight)
        if inputs.ndim == 2:
            inputs = inputs.expand(weight.shape[0], *inputs.shape)
        bias = take(self.bias)
        if weight.shape[-1] == 1 and inputs.device.type == "cpu":
            return _values(inputs, weight, bias)
        return torch.baddbmm(bias, inputs, weight)

    def of_many(self, inputs: Tensor, take: Take) -> Tensor:
        """Return the outputs `[critic, number, sample, outputs]` of `[critic, number, sample, inputs]`.

        Args:
            inputs: of the layer.
            take: `by_sample` of so many samples.
        """
        if self.weight.shape[-1] == 1:
            return (inputs * take(self.weight.transpose(1, 2))).sum(-1, keepdim=True) + take(self.bias)
        rows = inputs.flatten(1, 2)
        if inputs.device.type == "cpu":  # of so many rows, one product takes more than each on its own
            pairs = zip(rows.unbind(0), self.weight.unbind(0), strict=True)
            product = torch.stack([torch.mm(*pair) for pair in pairs])
        else:
            product = torch.bmm(rows, self.weight)
        return product.view(*inputs.shape[:-1], product.shape[-1]) + take(self.bias)

    @torch.no_grad()
    def initialise(self, how: Initialisation, gain: float, generator: torch.Generator) -> None:
        """Sample the weights, as `rlcore_plugin_mlp.network.MLP` does for each of its layers."""
        if how == "orthogonal":
            for weight in self.weight:
                nn.init.orthogonal_(weight, gain, generator=generator)
            self.bias.zero_()
        else:
            bound = 1 / math.sqrt(self.weight.shape[1])
            self.weight.uniform_(-bound, bound, generator=generator)
            self.bias.uniform_(-bound, bound, generator=generator)


def _values(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the batched product for one output; torch's own takes several times as long on a CPU.

    Args:
        inputs: `[critic, sample, inputs]`.
        weight: `[critic, inputs, 1]`.
        bias: `[critic, 1, 1]`.
    """
    if torch.compiler.is_compiling() or weight.shape[0] <= _FEW:  # compiled, it is one kernel with what comes before
        return (inputs * weight.transpose(1, 2)).sum(-1, keepdim=True) + bias
    each = zip(bias.unbind(0), inputs.unbind(0), weight.unbind(0), strict=True)
    return torch.stack([torch.addmm(*terms) for terms in each])


class Critics(nn.Module):
    """Quantiles of the return of observations and actions, `[critic, ..., quantile]`, by N critics; one is the value.

    Args:
        critics: how many.
        inputs: size of an observation, or of what the encoder makes of it.
        hidden: hidden sizes.
        box: of the actions.
        generator: samples the weights.
        activation: between the layers.
        initialisation: of the layers.
        norm: layers before each activation.
        encoder: of observations, shared by the critics; None for none.
        quantiles: of the return, that each critic gives; 1: its value.

    Attributes:
        hidden: as given.
        critics: as given.
        quantiles: as given.
    """

    def __init__(
        self,
        critics: int,
        inputs: int,
        hidden: Sequence[int],
        box: ActionBox,
        generator: torch.Generator,
        activation: Activation = "relu",
        initialisation: Initialisation = "torch",
        norm: Norm = "none",
        encoder: nn.Module | None = None,
        quantiles: int = 1,
    ) -> None:
        super().__init__()
        self.critics = critics
        self.quantiles = quantiles
        self.hidden = tuple(hidden)
        self.encoder = encoder
        self._packed = isinstance(encoder, PackedEncoder)
        self._box = box
        self._activation = activation
        sizes = [inputs + box.size, *hidden, quantiles]
        self.layers = nn.ModuleList(BatchedLinear(critics, *pair) for pair in itertools.pairwise(sizes))
        layers = [norm_layer(norm, critics, size) for size in hidden]
        self.norms = nn.ModuleList(layer for layer in layers if layer is not None)
        for layer in self.layers:
            assert isinstance(layer, BatchedLinear)
            last = layer is self.layers[-1]
            layer.initialise(initialisation, 1.0 if last else math.sqrt(2), generator)

    def forward(self, observation: Tensor, action: Tensor) -> Tensor:
        """Return values `[critic, ..., quantile]` of actions `[..., action]` in the env's units, without dropout."""
        batch_shape = action.shape[:-1]
        rows = observation.reshape(-1, *observation.shape[len(batch_shape) :])
        unit = self._box.to_unit(action).reshape(-1, action.shape[-1])
        return self.values(rows, unit).reshape(self.critics, *batch_shape, self.quantiles)

    def values(
        self, observation: Tensor, unit: Tensor, take: Take = whole, masks: Sequence[Tensor] | None = None
    ) -> Tensor:
        """Return the values of actions scaled to [-1, 1].

        Args:
            observation: `[sample, *shape]`.
            unit: `[sample, action]`.
            take: the weights: `whole`, `frozen`, `first`, or what `members` returns.
            masks: what dropout leaves of each hidden layer, `[critic, sample, size]` of 0 and `1 / (1 - rate)`; None
                for no dropout.

        Returns:
            `[critic, sample, quantile]`.
        """
        hidden = self.layers[0](torch.cat([self._features(observation, take), unit], -1), take)
        return self._after_first(hidden, take, masks)

    def values_of_many(self, observation: Tensor, units: Tensor) -> Tensor:
        """Return the values of several actions for each observation, which is looked at once.

        Args:
            observation: `[sample, *shape]`.
            units: scaled to [-1, 1], `[number, sample, action]`.

        Returns:
            `[critic, number, sample, 1]`.
        """
        features = self._features(observation, whole)
        first_layer = self.layers[0]
        assert isinstance(first_layer, BatchedLinear)
        of_features, of_units = torch.split(first_layer.weight, [features.shape[-1], units.shape[-1]], 1)
        from_features = torch.baddbmm(first_layer.bias, features.expand(self.critics, *features.shape), of_features)
        rows = units.flatten(0, 1)
        acted = torch.bmm(rows.expand(self.critics, *rows.shape), of_units)
        hidden = acted.view(self.critics, *units.shape[:2], acted.shape[-1]) + from_features[:, None]
        return self._after_first(hidden, by_sample(len(features)), None, BatchedLinear.of_many)

    def _after_first(
        self,
        hidden: Tensor,
        take: Take,
        masks: Sequence[Tensor] | None,
        apply: Callable[[BatchedLinear, Tensor, Take], Tensor] = BatchedLinear.__call__,
    ) -> Tensor:
        """Return the values `[critic, ..., sample, 1]`, given what the first layer makes; `apply` calls the others."""
        activate = ACTIVATIONS[self._activation]
        if not torch.compiler.is_compiling():  # nothing before it needs its own output for gradients
            activate = _IN_PLACE.get(self._activation, activate)
        _, *layers = self.layers
        for index, layer in enumerate(layers):
            assert isinstance(layer, BatchedLinear)
            if masks is not None:
                hidden = hidden * masks[index]
            if self.norms:
                hidden = self.norms[index](hidden, take)
            hidden = apply(layer, activate(hidden), take)
        return hidden

    def _features(self, observation: Tensor, take: Take) -> Tensor:
        if self.encoder is None:
            return observation.float()
        features: Tensor = self.encoder(observation if self._packed else observation.float())
        return features if take is whole else features.detach()
