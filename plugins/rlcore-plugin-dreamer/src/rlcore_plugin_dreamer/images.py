"""Observations that are images: convolutions that encode them, and convolutions that predict them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final

import gymnasium
import torch
from rlcore_plugin_cnn.images import ImageInput, Layout
from torch import Tensor, nn
from torch.nn import functional

from rlcore_plugin_dreamer.layers import EPS, BlockLinear, NormedLayer, initialise, linear
from rlcore_plugin_dreamer.sizes import Widths

_KERNEL: Final = 5
_MULTIPLES: Final = (2, 3, 4, 4)  # of the depth, by convolution
_LEAST_SIDE: Final = 3


def convolutions(height: int, width: int) -> int:
    """Return how many convolutions, each of which halves the sides, fit an image: 4 or less, and 0 for none."""
    fitting = [
        count
        for count in range(1, len(_MULTIPLES) + 1)
        if height % 2**count == 0 and width % 2**count == 0 and min(height, width) // 2**count >= _LEAST_SIDE
    ]
    return max(fitting, default=0)


class Images(ImageInput):
    """Brings observations with any leading shape into the form of a convolution.

    Args:
        space: of an observation.
        layout: where the channels are; see `ImageInput`.
    """

    def __init__(self, space: gymnasium.Space[Any], layout: Layout) -> None:
        super().__init__(space, layout)
        self._dimensions = len(space.shape or ())

    def rows(self, observation: Tensor) -> tuple[Sequence[int], Tensor]:
        """Return the leading shape of observations `[..., *shape]`, and images `[row, channel, height, width]`."""
        ends = observation.ndim - self._dimensions
        return observation.shape[:ends], self(observation.flatten(0, ends - 1))


class _Convolution(nn.Module):
    """A convolution that keeps the size of an image.

    Args:
        inputs: channels.
        outputs: channels.
        generator: samples the weights.
        normed: whether an RMS norm over the channels and SiLU follow.
    """

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator, normed: bool = True) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, _KERNEL, padding="same", device="meta").to_empty(device="cpu")
        initialise(self.conv.weight, inputs * _KERNEL**2, 1.0, generator)
        nn.init.zeros_(self.conv.bias)  # type: ignore[arg-type]
        self.norm = nn.RMSNorm(outputs, EPS) if normed else None

    def forward(self, images: Tensor, halved: bool = False) -> Tensor:
        """Return images `[row, channel, height, width]`, of half the sides where they are to be halved."""
        images = self.conv(images)
        if halved:
            images = functional.max_pool2d(images, 2)
        return images if self.norm is None else _normed(self.norm, images)


def _normed(norm: nn.Module, images: Tensor) -> Tensor:
    """Return images after an RMS norm over the channels and SiLU."""
    return functional.silu(norm(images.permute(0, 2, 3, 1))).permute(0, 3, 1, 2)


class ImageEncoder(nn.Module):
    """Convolutions, each of which is followed by a pooling that halves the sides.

    Args:
        image: brings observations into the form of a convolution.
        widths: has the depth.
        generator: samples the weights.

    Attributes:
        tokens: size of an encoded observation.
    """

    def __init__(self, image: Images, widths: Widths, generator: torch.Generator) -> None:
        super().__init__()
        self.image = image
        channels, height, width = image.shape
        depths = depths_of(widths, convolutions(height, width))
        pairs = zip([channels, *depths], depths, strict=False)
        self.layers = nn.ModuleList(_Convolution(a, b, generator) for a, b in pairs)
        self.tokens = depths[-1] * (height >> len(depths)) * (width >> len(depths))

    def forward(self, observation: Tensor) -> Tensor:
        """Return tokens `[..., token]` of observations `[..., *shape]`."""
        leading, rows = self.image.rows(observation)
        images = rows - 0.5
        for layer in self.layers:
            images = layer(images, halved=True)
        return images.reshape(*leading, self.tokens)


class ImageDecoder(nn.Module):
    """Predicts images from a state: a small one, whose sides each convolution doubles.

    Args:
        image: brings observations into the form of a convolution.
        widths: of the layers.
        generator: samples the weights.
    """

    def __init__(self, image: Images, widths: Widths, generator: torch.Generator) -> None:
        super().__init__()
        self.image = image
        channels, height, width = image.shape
        depths = depths_of(widths, convolutions(height, width))
        self._small = (depths[-1], height >> len(depths), width >> len(depths))
        size, self._blocks = math.prod(self._small), widths.blocks
        self.of_deter = BlockLinear(self._blocks, widths.deter // self._blocks, size // self._blocks, generator)
        stoch = widths.latents * widths.classes
        self.of_stoch = nn.Sequential(
            NormedLayer(stoch, 2 * widths.units, generator), linear(2 * widths.units, size, generator)
        )
        self.norm = nn.RMSNorm(depths[-1], EPS)
        ways = [*depths[::-1], channels]
        self.layers = nn.ModuleList(
            _Convolution(a, b, generator, normed=index < len(depths) - 1)
            for index, (a, b) in enumerate(itertools.pairwise(ways))
        )

    def forward(self, deter: Tensor, stoch: Tensor) -> Tensor:
        """Return the predictions `[..., channel, height, width]` of the two parts of a state, between 0 and 1."""
        leading = deter.shape[:-1]
        depth, height, width = self._small
        # each block fills some of the channels everywhere
        rows: Tensor = self.of_deter(deter.flatten(0, -2))
        rows = torch.unflatten(rows, -1, (self._blocks, height, width, -1))
        blocks = rows.permute(0, 1, 4, 2, 3).flatten(1, 2)
        others: Tensor = self.of_stoch(stoch.flatten(0, -2))
        others = torch.unflatten(others, -1, (height, width, depth)).permute(0, 3, 1, 2)
        images = _normed(self.norm, blocks + others)
        for layer in self.layers:
            images = layer(functional.interpolate(images, scale_factor=2.0, mode="nearest"))
        return torch.unflatten(images.sigmoid(), 0, leading)

    def loss(self, predicted: Tensor, observation: Tensor) -> Tensor:
        """Return the sum of the squared errors, `[...]`."""
        leading, rows = self.image.rows(observation)
        return (predicted - torch.unflatten(rows, 0, leading)).square().sum((-3, -2, -1))

    def observations(self, predicted: Tensor) -> Tensor:
        """Return the images `[..., channel, height, width]` that are predicted, between 0 and 1."""
        return predicted

    def compared(self, observation: Tensor) -> Tensor:
        """Return observations `[..., *shape]` in the form of predicted ones, `[..., channel, height, width]`."""
        leading, rows = self.image.rows(observation)
        return torch.unflatten(rows, 0, leading)


def depths_of(widths: Widths, count: int) -> list[int]:
    """Return the channels of so many convolutions."""
    return [widths.depth * multiple for multiple in _MULTIPLES[:count]]
