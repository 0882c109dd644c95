"""Images and videos as PNG and GIF files, which every log server and browser shows."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from rlcore.errors import ConfigError
from rlcore.loggers import values as log_values

if TYPE_CHECKING:
    from rlcore.types.records import Array


def png(image: Any) -> bytes:
    """Return an image `[C, H, W]`, uint8, as a PNG file.

    Raises:
        RlcoreError: another shape or type.
        ConfigError: Pillow is not installed.
    """
    pixels = log_values.image(image).transpose(1, 2, 0)
    stream = io.BytesIO()
    _pillow().fromarray(_coloured(pixels)).save(stream, "PNG")
    return stream.getvalue()


def gif(video: Any, fps: int = 30) -> bytes:
    """Return videos `[N, T, C, H, W]`, uint8, side by side as one GIF that repeats.

    GIF counts time in hundredths of a second, and shows at most 256 colours per frame.

    Raises:
        RlcoreError: another shape or type.
        ConfigError: Pillow is not installed.
    """
    pillow = _pillow()
    frames = [pillow.fromarray(_coloured(frame)) for frame in side_by_side(video)]
    stream = io.BytesIO()
    duration = max(20, 10 * round(100 / max(fps, 1)))  # browsers show frames of less than 20 ms for 100 ms
    frames[0].save(stream, "GIF", save_all=True, append_images=frames[1:], duration=duration, loop=0)
    return stream.getvalue()


def side_by_side(video: Any) -> Array:
    """Return videos `[N, T, C, H, W]` as the frames of one: `[T, H, N * W, C]`, uint8."""
    checked = log_values.video(video)
    num, length, channels, height, width = checked.shape
    return checked.transpose(1, 3, 0, 4, 2).reshape(length, height, num * width, channels)


def file_name(name: str) -> str:
    """Return a metric name as a relative path; `/` makes folders."""
    # no part may begin with a dot, as `..` leads out of the folder, or exceed the length of a file name
    parts = [re.sub(r"[^\w.\- ]", "_", part).lstrip(".")[:100] or "_" for part in name.split("/")]
    return "/".join(parts)


def _coloured(pixels: Array) -> Array:
    """Return contiguous pixels `[H, W, C]` with three channels."""
    if pixels.shape[-1] == 1:
        pixels = np.repeat(pixels, 3, axis=-1)
    return np.ascontiguousarray(pixels)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ConfigError(f"images and videos are written with Pillow ({error}): pip install pillow") from error
    return Image
