"""Pictures of what was seen beside what was imagined: images in pairs, and curves of vectors."""

from __future__ import annotations

import colorsys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import Tensor

from rlcore.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# what the model sees has a green frame, and what it imagines a red one
_SEEN: Final = (0, 160, 60)
_IMAGINED: Final = (210, 40, 40)
_BORDER: Final = 4
_LEAST_HEIGHT: Final = 256
# dimensions of a vector that are drawn, one below the other
_MOST_CURVES: Final = 12


def joined(real: Tensor, imagined: Tensor, shown: Tensor) -> Iterator[Tensor]:
    """Yield one picture per step, uint8 `[3, height, width]`: the real image on the left, the imagined one beside it.

    Args:
        real: `[time, channel, height, width]`, between 0 and 1; of frames that are stacked the last is shown, and of
            planes of zeros and ones, as MinAtar's, each has a colour.
        imagined: likewise.
        shown: which the model saw, bool `[time]`.
    """
    scale = -(-_LEAST_HEIGHT // real.shape[-2])
    colours = _colours(real)
    for left, right, is_shown in zip(
        _coloured(real, colours), _coloured(imagined, colours), shown.tolist(), strict=True
    ):
        colour = torch.tensor(_SEEN if is_shown else _IMAGINED, dtype=torch.uint8).view(3, 1, 1)
        framed = []
        for image, border in ((left, torch.zeros_like(colour)), (right, colour)):
            large = image.repeat_interleave(scale, -2).repeat_interleave(scale, -1)
            picture = border.repeat(1, large.shape[-2] + 2 * _BORDER, large.shape[-1] + 2 * _BORDER)
            picture[:, _BORDER:-_BORDER, _BORDER:-_BORDER] = large
            framed.append(picture)
        yield torch.cat(framed, -1)


def drawn(real: Tensor, imagined: Tensor, shown: Tensor) -> Iterator[Tensor]:
    """Yield one picture per step, uint8 `[3, height, width]`: the curves of an episode, and a line at the step.

    Args:
        real: `[time, size]`.
        imagined: likewise.
        shown: which the model saw, bool `[time]`.

    Raises:
        ConfigError: no matplotlib.
    """
    figure, axis = _curves(real, imagined, shown)
    canvas: Any = figure.canvas
    canvas.draw()
    picture = torch.from_numpy(np.asarray(canvas.buffer_rgba())[..., :3].copy()).permute(2, 0, 1)
    for time in range(len(shown)):
        column = round(float(axis.transData.transform((time, 0))[0]))
        step = picture.clone()
        step[:, :, column : column + 2] = 0
        yield step


def _colours(images: Tensor) -> Tensor:
    """Return the colour of each channel of images, `[channel, 3]`."""
    channels = images.shape[1]
    if channels > 1 and ((images == 0) | (images == 1)).all():
        return torch.tensor([colorsys.hsv_to_rgb(number / channels, 0.6, 1.0) for number in range(channels)])
    if channels == 3:
        return torch.eye(3)
    return torch.cat([torch.zeros(channels - 1, 3), torch.ones(1, 3)])


def _coloured(images: Tensor, colours: Tensor) -> Tensor:
    """Return images as uint8 `[time, 3, height, width]`."""
    coloured = torch.einsum("tchw,cd->tdhw", images.float(), colours)
    return coloured.clamp(0, 1).mul(255).round().to(torch.uint8)


def _curves(real: Tensor, imagined: Tensor, shown: Tensor) -> tuple[Figure, Any]:
    """Return a figure with a curve for each of the first dimensions, and one of its axes."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError(
            "--imagined draws curves of observations that are vectors, which needs matplotlib: pip install "
            "'rlcore[reports]'"
        ) from None
    count = min(real.shape[1], _MOST_CURVES)
    figure = Figure(figsize=(8, 1 + 0.7 * count), dpi=80, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    times = np.arange(len(shown))
    alone = imagined.masked_fill(shown.unsqueeze(1), torch.nan)
    for index, axis in enumerate(axes):
        axis.plot(times, real[:, index], color="black", label="real")
        axis.plot(times, alone[:, index], color=tuple(part / 255 for part in _IMAGINED), label="imagined")
        axis.set_ylabel(str(index))
        for time in np.flatnonzero(shown.numpy()):
            axis.axvspan(time - 0.5, time + 0.5, color=tuple(part / 255 for part in _SEEN), alpha=0.2, linewidth=0)
    axes[0].legend(loc="upper right", ncols=2)
    axes[-1].set_xlabel("step; green: the model sees the observation")
    if count < real.shape[1]:
        figure.suptitle(f"the first {count} of {real.shape[1]} numbers of an observation")
    return figure, axes[0]
