"""Pictures: those of classic control by Gymnasium's own renderer, those of MinAtar with a colour for each channel."""

from __future__ import annotations

import colorsys
import os
import sys
from typing import TYPE_CHECKING, Any, Final

import gymnasium
import numpy as np
import torch
from torch import Tensor

from rlcore.errors import EnvError

if TYPE_CHECKING:
    from rlcore.types import Array

_CELL: Final = 16  # pixels
_GROUND: Final = (24, 24, 32)


class Renderer:
    """Shows states of an env of classic control.

    Args:
        name: of the env in Gymnasium.

    Raises:
        EnvError: Gymnasium's renderer is not installed.
    """

    def __init__(self, name: str) -> None:
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # it goes to the standard output
        if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        self._env: Any = gymnasium.make(name, render_mode="rgb_array").unwrapped
        self._env.reset(seed=0)
        self._name = name

    def picture(self, numbers: Array) -> Array:
        """Return the picture of a state, uint8 `[height, width, 3]`."""
        self._env.state = numbers
        try:
            return self._env.render()  # type: ignore[no-any-return]
        except gymnasium.error.DependencyNotInstalled as error:
            raise EnvError(
                f"env {self._name!r} cannot be rendered: {error}; pip install 'gymnasium[classic-control]' installs "
                "the renderer"
            ) from error

    def close(self) -> None:
        """Free what it drew on."""
        self._env.close()


def coloured(channels: Tensor) -> Array:
    """Return pictures of images `[picture, height, width, channel]` of truth values; the last channel is on top."""
    count = channels.shape[-1]
    hues = [colorsys.hsv_to_rgb(number / count, 0.65, 1.0) for number in range(count)]
    colours = np.array([_GROUND, *(np.multiply(hue, 255).round() for hue in hues)], np.uint8)
    number = (channels.cpu().long() * torch.arange(1, count + 1)).amax(-1).numpy()
    pictures: Array = colours[number].repeat(_CELL, 1).repeat(_CELL, 2)
    return pictures
