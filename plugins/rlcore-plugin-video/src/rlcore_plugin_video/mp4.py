"""Videos as mp4 files: H.264, which every browser plays."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import av
import numpy as np
import torch
from torch import Tensor

from rlcore.errors import StorageError
from rlcore.files import replacing

# hardly visible loss (0 is none, 51 the most), at a speed of some hundred frames per second
_QUALITY: Final = {"crf": "18", "preset": "veryfast"}


def write_mp4(path: Path, frames: Tensor, fps: int) -> None:
    """Write one video; a file of that name is replaced as a whole.

    A picture with an odd side gets its last row or column twice: the format needs even sides.

    Args:
        path: of the file; its folder is made.
        frames: uint8 `[T, C, H, W]`, with 1 or 3 channels and at least one frame.
        fps: frames per second.

    Raises:
        StorageError: it cannot be encoded or written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as place:
            _encode(place, frames, fps)
    except (OSError, av.error.FFmpegError) as error:
        raise StorageError(f"video {str(path)!r} cannot be written: {error}") from error


def read_mp4(path: str | Path) -> tuple[Tensor, float]:
    """Return the frames of a video, uint8 `[T, 3, H, W]`, and its frames per second.

    Raises:
        StorageError: it cannot be read.
    """
    try:
        with av.open(str(path)) as container:
            rate = container.streams.video[0].average_rate
            frames = [torch.from_numpy(frame.to_ndarray(format="rgb24")) for frame in container.decode(video=0)]
    except (OSError, av.error.FFmpegError) as error:
        raise StorageError(f"video {str(path)!r} cannot be read: {error}") from error
    return torch.stack(frames).permute(0, 3, 1, 2), float(rate or 0)


def _encode(path: Path, frames: Tensor, fps: int) -> None:
    height, width = frames.shape[-2:]
    with av.open(str(path), "w", format="mp4", options={"movflags": "faststart"}) as container:
        stream = container.add_stream("libx264", rate=fps, options=_QUALITY)
        stream.height, stream.width = height + height % 2, width + width % 2
        stream.pix_fmt = "yuv420p"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(_picture(frame), format="rgb24")))
        container.mux(stream.encode(None))


def _picture(frame: Tensor) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return a frame `[C, H, W]` as the encoder takes it: `[H, W, 3]` in one piece, with even sides."""
    picture = frame.expand(3, -1, -1).permute(1, 2, 0).contiguous().numpy()
    height, width = picture.shape[:2]
    if height % 2 or width % 2:
        picture = np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    return picture


class VideoFolder:
    """Takes videos as a logger does, and writes mp4 files into a folder.

    Args:
        folder: made when the first video comes.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def log_video(self, name: str, video: Tensor, step: int, fps: int) -> None:
        """Write `NAME_STEP.mp4`, or of several videos `NAME_STEP_0.mp4` and so on.

        Args:
            name: a slash and whatever else has no place in a file name becomes a hyphen.
            video: uint8 `[N, T, C, H, W]`.
            step: environment frames.
            fps: frames per second.

        Raises:
            StorageError: a video cannot be written.
        """
        stem = re.sub(r"[^\w.-]+", "-", name) + f"_{step}"
        for index, frames in enumerate(video):
            write_mp4(self._folder / (f"{stem}_{index}.mp4" if len(video) > 1 else f"{stem}.mp4"), frames, fps)
