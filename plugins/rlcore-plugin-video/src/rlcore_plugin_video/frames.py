"""Frames and videos as tensors: any pixels to uint8 `[..., C, H, W]`, cropped, tiled, of one length.

Encoding them is in `mp4.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from rlcore.errors import RlcoreError

# most frames of a video unless another number is given: 350 MB of MuJoCo's 480 x 480 pixels
MAX_FRAMES: Final = 500
_CHANNELS: Final = (1, 3)


def to_frames(pixels: Any, name: str = "pixels") -> Tensor:
    """Return a copy of pixels as uint8 `[..., C, H, W]` on the CPU.

    Args:
        pixels: tensor or array, uint8 or float in [0, 1]; `[..., C, H, W]`, `[..., H, W, C]` or `[H, W]`, where C is
            1 or 3. Where both could be meant, the channels come first.
        name: for messages.

    Raises:
        RlcoreError: of another shape or type, or a float outside [0, 1].
    """
    frames = torch.as_tensor(np.ascontiguousarray(pixels) if isinstance(pixels, np.ndarray) else pixels).detach().cpu()
    shape = list(frames.shape)
    if frames.ndim == 2:
        frames = frames.unsqueeze(0)
    elif frames.ndim < 3 or not (shape[-3] in _CHANNELS or shape[-1] in _CHANNELS):
        raise RlcoreError(
            f"{name} of shape {shape} are no frames; they are [..., C, H, W] or [..., H, W, C] with 1 or 3 channels"
        )
    elif shape[-3] not in _CHANNELS:
        frames = frames.movedim(-1, -3)
    return _to_bytes(frames, name).clone(memory_format=torch.contiguous_format)


def center_crop(frames: Tensor, size: int) -> Tensor:
    """Return the middle square of frames `[..., H, W]`, `size` pixels wide; a side that is shorter stays."""
    height, width = frames.shape[-2:]
    top, left = max(0, height - size) // 2, max(0, width - size) // 2
    return frames[..., top : top + size, left : left + size]


def tile(videos: Tensor) -> Tensor:
    """Return videos `[N, T, C, H, W]` side by side as one, `[T, C, rows * H, columns * W]`; black where none is."""
    if len(videos) == 1:
        return videos[0]
    count, length, channels, height, width = videos.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    filled = videos.new_zeros(rows * columns, length, channels, height, width)
    filled[:count] = videos
    grid = filled.view(rows, columns, length, channels, height, width).permute(2, 3, 0, 4, 1, 5)
    return grid.reshape(length, channels, rows * height, columns * width)


def stack(videos: Sequence[Tensor]) -> Tensor:
    """Return videos `[T_i, C, H, W]` as `[N, T, C, H, W]`; shorter ones stand still at their last frame."""
    if len(videos) == 1:
        return videos[0].unsqueeze(0)
    length = max(map(len, videos))
    return torch.stack([video[torch.arange(length).clamp(max=len(video) - 1)] for video in videos])


def _to_bytes(frames: Tensor, name: str) -> Tensor:
    if frames.dtype == torch.uint8:
        return frames
    if not frames.is_floating_point():
        raise RlcoreError(f"{name} are {frames.dtype}; frames are uint8, or float in [0, 1]")
    if not bool(((frames >= 0) & (frames <= 1)).all()):
        low, high = float(frames.min()), float(frames.max())
        raise RlcoreError(f"{name} go from {low:.4g} to {high:.4g}; frames of floats are in [0, 1]. Divide by 255?")
    return (frames * 255).round().to(torch.uint8)
