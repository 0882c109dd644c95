"""Keeps the pixels of the TensorDicts that it is shown, and hands them to a logger as a video."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import torch
from tensordict import TensorDictBase
from torch import Tensor

from rlcore.errors import ConfigError, RlcoreError
from rlcore_plugin_video.as_transform import as_transform
from rlcore_plugin_video.frames import MAX_FRAMES, center_crop, tile, to_frames

if TYPE_CHECKING:
    from matplotlib.animation import ArtistAnimation

    from rlcore.types import Key

log = logging.getLogger(__name__)

_FPS: Final = 30


class VideoLogger(Protocol):
    """Whatever takes videos: a logger, the metrics of a run (`trainer.metrics`), a `VideoFolder`."""

    def log_video(self, name: str, video: Tensor, step: int, fps: int) -> object:
        """Take a video, uint8 `[N, T, C, H, W]`; `step` is the number of environment frames."""
        ...


class VideoRecorder:
    """Called on a TensorDict, takes a frame from it; `dump` hands the video over.

    Named after TorchRL's recorder. A step of a vector env gives one frame, with the envs side by side. Where a script
    has imported `torchrl.envs`, it is a transform of that library too: it records the env that it is a part of, and
    `env.transform.dump()` reaches it.

    Args:
        logger: takes the videos; None to use the frames for `to_animation` only.
        tag: name of the video. With several `in_keys` there is a video of each, called `tag/key`.
        in_keys: entries that hold pixels, uint8 or float in [0, 1], `[..., C, H, W]` or `[..., H, W, C]`; None:
            `pixels`.
        skip: calls between two frames, beginning with the first call; None: 1.
        center_crop: width of the middle square that is kept, in pixels; None: everything.
        make_grid: True: what stands before the last three dimensions of pixels are envs, shown side by side. False:
            they are times, and their frames follow each other, as in `[time]` batches of a data set. None: True.
        out_keys: where the pixels are written as well, one per key of `in_keys`; None: nowhere.
        fps: frames per second; None: 30.
        max_frames: most frames that are kept; those that come then are dropped until the next `dump`. None: 500.
        dump_on_done: dump at every step at which all envs end their episode.

    Attributes:
        frames_seen: environment frames that it was shown: one per call, or as many as the TensorDict has elements.

    Raises:
        ConfigError: an argument cannot be.
    """

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """Return a transform of TorchRL, where that library is in use."""
        return super().__new__(as_transform(cls))

    def __init__(
        self,
        logger: VideoLogger | None,
        tag: str,
        in_keys: Iterable[Key] | None = ("pixels",),
        skip: int | None = None,
        center_crop: int | None = None,
        make_grid: bool | None = None,
        out_keys: Iterable[Key] | None = None,
        fps: int | None = None,
        max_frames: int | None = MAX_FRAMES,
        dump_on_done: bool = False,
    ) -> None:
        self._in_keys: list[Key] = ["pixels"] if in_keys is None else list(in_keys)
        self._out_keys = self._in_keys if out_keys is None else list(out_keys)
        if len(self._in_keys) != len(self._out_keys):
            raise ConfigError(f"VideoRecorder: {len(self._in_keys)} in_keys, but {len(self._out_keys)} out_keys")
        numbers = {"skip": skip, "center_crop": center_crop, "fps": fps, "max_frames": max_frames}
        for name, number in numbers.items():
            if number is not None and number < 1:
                raise ConfigError(f"VideoRecorder: {name} = {number} must be positive")
        self._logger = logger
        self._tag = tag
        self._skip = skip or 1
        self._center_crop = center_crop
        self._make_grid = make_grid is not False
        self._fps = fps or _FPS
        self._max_frames = max_frames or MAX_FRAMES
        self._dump_on_done = dump_on_done
        self.frames_seen = 0
        self._clear()

    def __call__(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Take a frame, if it is time, and return the TensorDict.

        Raises:
            RlcoreError: it has no such pixels, or they are of another size than those before.
        """
        for key, out_key in zip(self._in_keys, self._out_keys, strict=True):
            pixels = tensordict.get(key, None)
            if pixels is None:
                there = ", ".join(map(repr, tensordict.keys(True, True)))
                raise RlcoreError(f"VideoRecorder {self._tag!r} finds no pixels under {key!r}; there is: {there}")
            if self._calls % self._skip == 0:
                self._add(key, to_frames(tensordict[key], repr(key)))
            if out_key != key:
                tensordict.set(out_key, pixels)
        self._calls += 1
        self.frames_seen += tensordict.numel()
        if self._dump_on_done and _all_done(tensordict):
            self.dump()
        return tensordict

    def dump(self, suffix: str | None = None, step: int | None = None) -> None:
        """Hand the video over and forget its frames; without frames, do nothing.

        Args:
            suffix: appended to the tag, after an underscore.
            step: environment frames under which the video is logged; None: `frames_seen`.
        """
        frames = self._frames
        self._clear()
        if self._logger is None:
            return
        for key, kept in frames.items():
            if kept:
                name = self._name(key) if suffix is None else f"{self._name(key)}_{suffix}"
                step = self.frames_seen if step is None else step
                self._logger.log_video(name, torch.stack(kept).unsqueeze(0), step=step, fps=self._fps)

    def to_animation(
        self, *, title: str | None = None, interval: int = 50, repeat_delay: int = 1000, clear: bool = False
    ) -> ArtistAnimation:
        """Return the frames of the first key as a Matplotlib animation, for a notebook.

        Args:
            title: above the picture.
            interval: between two frames, in milliseconds.
            repeat_delay: before the animation begins again, in milliseconds.
            clear: whether to forget the frames.

        Raises:
            RlcoreError: there are no frames, or Matplotlib is not installed.
        """
        frames = self._frames[self._in_keys[0]]
        if not frames:
            raise RlcoreError(f"VideoRecorder {self._tag!r} has no frames yet; call it on a TensorDict with pixels")
        try:
            from matplotlib import pyplot
            from matplotlib.animation import ArtistAnimation
        except ImportError as error:
            raise RlcoreError("to_animation needs Matplotlib: pip install 'rlcore-plugin-video[animation]'") from error
        figure, axis = pyplot.subplots()
        axis.set_axis_off()
        if title is not None:
            axis.set_title(title)
        pictures = [frame.movedim(0, -1).expand(-1, -1, 3).numpy() for frame in frames]
        artists = [[axis.imshow(picture, animated=True)] for picture in pictures]
        if clear:
            self._clear()
        return ArtistAnimation(figure, artists, interval=interval, blit=True, repeat_delay=repeat_delay)

    def _clear(self) -> None:
        self._frames: dict[Key, list[Tensor]] = {key: [] for key in self._in_keys}
        self._calls = 0
        self._full = False

    def _add(self, key: Key, frames: Tensor) -> None:
        if self._center_crop is not None:
            frames = center_crop(frames, self._center_crop)
        frames = frames.reshape(-1, *frames.shape[-3:])
        if self._make_grid:
            frames = tile(frames.unsqueeze(1))
        kept = self._frames[key]
        if kept and frames.shape[1:] != kept[0].shape:
            raise RlcoreError(
                f"VideoRecorder {self._tag!r}: frames {list(frames.shape[1:])} under {key!r} follow frames "
                f"{list(kept[0].shape)}; dump in between"
            )
        room = self._max_frames - len(kept)
        if len(frames) > room and not self._full:
            self._full = True
            log.warning("VideoRecorder %r keeps %d frames and drops the others", self._tag, self._max_frames)
        kept.extend(frames[:room])

    def _name(self, key: Key) -> str:
        if len(self._in_keys) == 1:
            return self._tag
        return "/".join([self._tag, *([key] if isinstance(key, str) else key)])


def _all_done(tensordict: TensorDictBase) -> bool:
    done: Any = tensordict.get(("next", "done"), None)
    if done is None:
        done = tensordict.get("done", None)
    return done is not None and bool(done.all())
