"""Convolutional bodies: images to features, as the encoder of any model that takes one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import gymnasium
import torch
from torch import Tensor, nn

from rlcore.errors import ConfigError
from rlcore_plugin_cnn.images import ImageInput, Layout

Initialisation = Literal["torch", "orthogonal"]


class NatureCNN(nn.Module):
    """Convolutions, then one linear layer, with ReLU after each (Mnih et al., 2015, Nature 518, methods).

    Images `[row, *shape]` of any kind of number to features `[row, features]`. By default the network for images of
    84 x 84; for those of 10 x 10, as of MinAtar, take `channels = [16]`, `kernels = [3]`, `strides = [1]`,
    `features = 128` (Young and Tian, 2019, arXiv 1903.03176).

    Args:
        space: of an observation; see `ImageInput`.
        channels: of each convolution.
        kernels: their sizes.
        strides: of each.
        features: of the linear layer.
        initialisation: `torch`, its default; or `orthogonal`, with gain sqrt(2) and zero biases.
        layout: where the channels of an image are, `first` or `last`; `auto` takes the shorter end.
        divisor: of every number; default: 255 for bytes, 1 for truth values and floats.

    Raises:
        ConfigError: the observations are no images, or too small for the kernels.
    """

    def __init__(
        self,
        space: gymnasium.Space[Any],
        channels: Sequence[int] = (32, 64, 64),
        kernels: Sequence[int] = (8, 4, 3),
        strides: Sequence[int] = (4, 2, 1),
        features: int = 512,
        initialisation: Initialisation = "torch",
        layout: Layout = "auto",
        divisor: float | None = None,
    ) -> None:
        super().__init__()
        if not len(channels) == len(kernels) == len(strides) > 0:
            raise ConfigError(
                f"[model] kernels: {len(channels)} channels, {len(kernels)} kernels and {len(strides)} strides; each "
                "convolution needs one of each"
            )
        self.image = ImageInput(space, layout, divisor)
        inputs, *size = self.image.shape
        layers: list[nn.Module] = []
        for outputs, kernel, stride in zip(channels, kernels, strides, strict=True):
            size = [(length - kernel) // stride + 1 for length in size]
            if min(size) < 1:
                raise ConfigError(
                    f"[model] kernels: {list(kernels)} with strides {list(strides)} are too large for images of "
                    f"{' x '.join(map(str, self.image.shape[1:]))}; for 10 x 10, channels = [16], kernels = [3], "
                    "strides = [1], features = 128 will do"
                )
            layers += [nn.Conv2d(inputs, outputs, kernel, stride), nn.ReLU()]
            inputs = outputs
        self.convolutions = nn.Sequential(*layers)
        self.linear = nn.Sequential(nn.Flatten(), nn.Linear(inputs * math.prod(size), features), nn.ReLU())
        _initialise(self, initialisation)

    def forward(self, observation: Tensor) -> Tensor:
        """Return the features."""
        return self.linear(self.convolutions(self.image(observation)))  # type: ignore[no-any-return]


class ImpalaCNN(nn.Module):
    """Residual blocks, then one linear layer (Espeholt et al., 2018, arXiv 1802.01561, figure 3, without the LSTM).

    Images `[row, *shape]` of any kind of number to features `[row, features]`. Each stage halves the image.

    Args:
        space: of an observation; see `ImageInput`.
        channels: of each stage.
        features: of the linear layer.
        initialisation: `torch`, its default; or `orthogonal`, with gain sqrt(2) and zero biases.
        layout: where the channels of an image are, `first` or `last`; `auto` takes the shorter end.
        divisor: of every number; default: 255 for bytes, 1 for truth values and floats.

    Raises:
        ConfigError: the observations are no images.
    """

    def __init__(
        self,
        space: gymnasium.Space[Any],
        channels: Sequence[int] = (16, 32, 32),
        features: int = 256,
        initialisation: Initialisation = "torch",
        layout: Layout = "auto",
        divisor: float | None = None,
    ) -> None:
        super().__init__()
        if not channels:
            raise ConfigError("[model] channels: is empty; every stage has a number of channels")
        self.image = ImageInput(space, layout, divisor)
        inputs, *size = self.image.shape
        stages = []
        for outputs in channels:
            stages.append(_Stage(inputs, outputs))
            inputs, size = outputs, [-(-length // 2) for length in size]
        self.stages = nn.Sequential(*stages)
        self.linear = nn.Sequential(nn.ReLU(), nn.Flatten(), nn.Linear(inputs * math.prod(size), features), nn.ReLU())
        _initialise(self, initialisation)

    def forward(self, observation: Tensor) -> Tensor:
        """Return the features."""
        return self.linear(self.stages(self.image(observation)))  # type: ignore[no-any-return]


class _Stage(nn.Module):
    """A convolution, the maximum of every 3 x 3 at half the size, two residual blocks."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.pool = nn.MaxPool2d(3, 2, padding=1)
        self.blocks = nn.ModuleList(_Residual(outputs) for _ in range(2))

    def forward(self, images: Tensor) -> Tensor:
        images = self.pool(self.convolution(images))
        for block in self.blocks:
            images = block(images)
        return images


class _Residual(nn.Module):
    """Two convolutions whose result is added to what goes in."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        return images + self.second(torch.relu(self.first(torch.relu(images))))  # type: ignore[no-any-return]


def _initialise(body: nn.Module, how: Initialisation) -> None:
    """Set the weights of every layer where they are not to be those of torch.

    Raises:
        ConfigError: there is no such way.
    """
    if how not in ("torch", "orthogonal"):
        raise ConfigError(f"[model] initialisation: {how!r} is none; write torch or orthogonal")
    if how == "torch":
        return
    for layer in body.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.orthogonal_(layer.weight, math.sqrt(2))
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
