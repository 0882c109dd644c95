"""Images as observations have them, and as convolutions take them: float32 `[row, channel, height, width]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

from rlcore.errors import ConfigError

Layout = Literal["auto", "first", "last"]

_MOST: Final = 65_535


class ImageInput(nn.Module):
    """Brings images into the form of a convolution: the channels before height and width, numbers of about 1.

    An image is `[height, width]`, `[channel, height, width]`, `[height, width, channel]`, or a stack of the latter,
    `[frame, height, width, channel]`, whose frames become channels. Bytes are divided by 255, other integers by the
    largest that the space has; truth values and floats stay as they are.

    Args:
        space: of an observation.
        layout: where the channels are, `first` or `last`; `auto` takes the shorter end.
        divisor: of every number, instead of the one that follows from the space.

    Attributes:
        shape: of an image, `(channel, height, width)`.

    Raises:
        ConfigError: the space is of no images; where the channels are cannot be told; or numbers are of a range for
            which there must be a divisor.
    """

    def __init__(self, space: gymnasium.Space[Any], layout: Layout = "auto", divisor: float | None = None) -> None:
        super().__init__()
        if not isinstance(space, gymnasium.spaces.Box) or not 2 <= len(space.shape) <= 4:
            raise ConfigError(
                f"[model]: a convolution takes images, a Box of two to four dimensions, and observations are in {space}"
            )
        self._order = _order(space.shape, layout)
        self._factor = 1.0 / (_divisor(space) if divisor is None else divisor)
        self.shape = self._arranged(torch.empty(1, *space.shape, device="meta")).shape[1:]

    def forward(self, images: Tensor) -> Tensor:
        """Return images `[row, *shape]` of any kind of number as float32 `[row, channel, height, width]`."""
        arranged = self._arranged(images)
        if arranged.device.type == "cpu":
            # channels last in memory, while they are bytes: convolutions take two thirds of the time for large batches
            arranged = arranged.contiguous(memory_format=torch.channels_last)
        numbers = arranged.float()
        return numbers if self._factor == 1.0 else numbers * self._factor

    def _arranged(self, images: Tensor) -> Tensor:
        if images.ndim == 3:
            return images.unsqueeze(1)
        if images.ndim == 5:
            return images.permute(0, *self._order).flatten(1, 2)
        return images.permute(0, *self._order) if self._order else images


def _order(shape: Sequence[int], layout: Layout) -> tuple[int, ...]:
    """Return the order of the dimensions of an observation, counted from 1; empty where it stays."""
    if len(shape) == 2:
        return ()
    if len(shape) == 4:
        return (1, 4, 2, 3)
    if layout == "auto":
        first, _, last = shape
        if first == last:
            raise ConfigError(
                f"[model] layout: images of shape {tuple(shape)} may have their channels first or last; say which, "
                'layout = "first" or "last", of an encoder among its encoder_kwargs',
                remedy={"model": {"layout": "last"}},  # where Gymnasium has them
            )
        layout = "first" if first < last else "last"
    return () if layout == "first" else (3, 1, 2)


def _divisor(space: gymnasium.spaces.Box) -> float:
    kind = np.dtype(space.dtype).kind
    if kind == "b":
        return 1.0
    low, high = float(space.low.min()), float(space.high.max())
    if kind in "iu" and high <= _MOST:
        return max(high, 1.0)
    if kind == "f" and not (1.0 < max(-low, high) < np.inf):
        return 1.0
    raise ConfigError(
        f"[model] divisor: images are {space.dtype} from {low:g} to {high:g}, and a network learns from numbers about "
        f"1; set divisor = {high:g}, or let the env return them as uint8, which takes a quarter of the memory"
    )
