"""Convolutions of small images with layer norm, before the linear layers of a network of action values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import gymnasium
import torch
from rlcore_plugin_cnn.images import ImageInput, Layout
from rlcore_plugin_mlp.network import initialise
from torch import Tensor, nn

from rlcore.errors import ConfigError

_KERNEL: Final = 3


class Convolutions(nn.Module):
    """Convolutions of 3 x 3, each with a layer norm of its channels at every place, and a rectifier behind it.

    Images `[row, *shape]` of any kind of number to features `[row, feature]`.

    Args:
        space: of an observation.
        channels: of each convolution.
        layout: where the channels of an image are.
        generator: of the weights, by torch's own initialisation.

    Attributes:
        features: how many there are.

    Raises:
        ConfigError: the observations are no images, or too small for so many convolutions.
    """

    def __init__(
        self, space: gymnasium.Space[Any], channels: Sequence[int], layout: Layout, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.image = ImageInput(space, layout)
        inputs, height, width = self.image.shape
        shrunk = len(channels) * (_KERNEL - 1)
        if min(height, width) <= shrunk:
            raise ConfigError(
                f"[model] channels: images of {height} x {width} are too small for {len(channels)} convolutions of "
                f"{_KERNEL} x {_KERNEL}"
            )
        layers: list[nn.Module] = []
        for outputs in channels:
            convolution = nn.Conv2d(inputs, outputs, _KERNEL)
            initialise(convolution, "torch", 1.0, generator)
            layers += [convolution, ChannelNorm(outputs), nn.ReLU()]
            inputs = outputs
        self.layers = nn.Sequential(*layers)
        self.features = inputs * (height - shrunk) * (width - shrunk)

    def forward(self, observation: Tensor) -> Tensor:
        """Return the features."""
        return self.layers(self.image(observation)).flatten(1)  # type: ignore[no-any-return]


class ChannelNorm(nn.LayerNorm):
    """The layer norm of the channels of images `[row, channel, height, width]`, at each place by itself."""

    def forward(self, images: Tensor) -> Tensor:
        """Return the images with normed channels."""
        return super().forward(images.movedim(1, -1)).movedim(-1, 1)
