"""Networks with batch renormalisation before every linear map, as CrossQ has them: of N critics, and of an actor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from rlcore_plugin_mlp.network import ACTIVATIONS, MLP, Activation, Initialisation
from torch import Tensor, nn

from rlcore_plugin_sac.batch_renorm import BatchRenorm
from rlcore_plugin_sac.box import ActionBox
from rlcore_plugin_sac.critics import Critics, whole
from rlcore_plugin_sac.norms import Take


class NormalisedCritics(Critics):
    """N critics in one batched network; the input and every hidden layer are normalised after their activation.

    Figure 2 of arXiv 1902.05605.

    Args:
        critics: how many.
        inputs: size of an observation.
        hidden: hidden sizes.
        box: of the actions.
        generator: samples the weights.
        activation: between the layers.
        initialisation: of the layers.
        momentum: of the running statistics.
        warmup: updates of plain batch normalisation.
    """

    def __init__(
        self,
        critics: int,
        inputs: int,
        hidden: Sequence[int],
        box: ActionBox,
        generator: torch.Generator,
        activation: Activation,
        initialisation: Initialisation,
        momentum: float,
        warmup: int,
    ) -> None:
        super().__init__(critics, inputs, hidden, box, generator, activation, initialisation)
        sizes = [inputs + box.size, *hidden]
        self.norms = nn.ModuleList(BatchRenorm(size, critics, momentum, warmup) for size in sizes)

    def normalised(self, observation: Tensor, unit: Tensor, take: Take = whole, update: bool = False) -> Tensor:
        """Return the values `[critic, sample, 1]` of actions scaled to [-1, 1].

        Args:
            observation: `[sample, inputs]`.
            unit: `[sample, action]`.
            take: of the weights; `frozen` takes them without gradients.
            update: normalise by this batch, and move the running statistics; False: by those, and nothing changes.
        """
        activate = ACTIVATIONS[self._activation]
        inputs = torch.cat([observation.float(), unit], -1).expand(self.critics, -1, -1)
        for index, (norm, layer) in enumerate(zip(self.norms, self.layers, strict=True)):
            inputs = norm(activate(inputs) if index else inputs, update, take)
            inputs = layer(inputs, take)
        return inputs

    def values(self, observation: Tensor, unit: Tensor, take: Take = whole, masks: None = None) -> Tensor:  # type: ignore[override]
        """Return the values by the running statistics; see `Critics.values`."""
        return self.normalised(observation, unit, take)


class NormalisedMLP(MLP):
    """An MLP whose input and hidden layers are normalised; inputs of any kind of number.

    Args:
        sizes: inputs, hidden sizes, outputs.
        activation: between the layers.
        initialisation: of the layers.
        generator: samples the weights.
        momentum: of the running statistics.
        warmup: updates of plain batch normalisation.
    """

    def __init__(
        self,
        sizes: list[int],
        activation: Activation,
        initialisation: Initialisation,
        generator: torch.Generator,
        momentum: float,
        warmup: int,
    ) -> None:
        super().__init__(sizes, activation, initialisation, 1.0, generator)
        self.norms = nn.ModuleList(BatchRenorm(size, None, momentum, warmup) for size in sizes[:-1])

    def forward(self, inputs: Tensor, update: bool = False) -> Tensor:
        """Return the outputs `[..., outputs]`; `update` normalises by this batch, and moves the running statistics."""
        activate = ACTIVATIONS[self._activation]
        inputs = inputs.float()
        for index, (norm, layer) in enumerate(zip(self.norms, self.layers, strict=True)):
            inputs = layer(norm(activate(inputs) if index else inputs, update))
        return inputs

    @torch.no_grad()
    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return the forward pass for `[row, inputs]` over weights and statistics as they are now.

        It does not follow later changes. The running statistics are folded into the linear maps.
        """
        activate = ACTIVATIONS[self._activation]
        maps: list[tuple[Tensor, Tensor]] = []
        for norm, layer in zip(self.norms, self.layers, strict=True):
            assert isinstance(norm, BatchRenorm)
            assert isinstance(layer, nn.Linear)
            scale, shift = norm.affine()
            maps.append(((layer.weight * scale).t(), torch.addmv(layer.bias, layer.weight, shift)))
        *hidden, (last_weight, last_bias) = maps

        def forward(inputs: Tensor) -> Tensor:
            inputs = inputs.float()
            for weight, bias in hidden:
                inputs = activate(torch.addmm(bias, inputs, weight))
            return torch.addmm(last_bias, inputs, last_weight)

        return forward
