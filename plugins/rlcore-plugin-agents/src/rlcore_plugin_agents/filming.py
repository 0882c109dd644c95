"""Showing an agent: episodes in a window, or as a video file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import torch

import rlcore
from rlcore.envs import play
from rlcore.errors import ConfigError
from rlcore.types import Env, defines
from rlcore_plugin_agents.stage import Stage

# pictures per second that a video has at most, and pictures that it has at most in all, as they are held in memory
_FPS: Final = 30
_MOST: Final = 2_000


def show(stage: Stage, seeds: range) -> Iterator[tuple[int, float, int]]:
    """Play one episode after another in a window; yield the seed, the return and the length of each.

    Raises:
        ConfigError: there is no display, or the env has no window.
    """
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise ConfigError("there is no display here to open a window on: write a video with --video FILE")
    with closing(stage.env(1, render_mode="human")) as env:
        for seed in seeds:
            returns, lengths = play(env, stage.context, seed)
            yield seed, float(returns[0]), int(lengths[0])


def check_video(file: Path) -> None:
    """Refuse a video that could not be written, before anything is played.

    Raises:
        ConfigError: the file is there already, or is no mp4.
        PluginError: rlcore-plugin-video is not installed.
    """
    if file.suffix != ".mp4":
        raise ConfigError(f"--video {str(file)!r}: videos are mp4 files; call it {file.with_suffix('.mp4').name}")
    if file.exists():
        raise ConfigError(f"--video {str(file)!r} exists already; choose another name, or remove it")
    _ = rlcore.write_mp4


def film(stage: Stage, seeds: range, file: Path) -> Iterator[tuple[int, float, int]]:
    """Play one episode after another, write all of them into one video; yield the seed, return and length of each.

    Raises:
        ConfigError: the env cannot be rendered.
        StorageError: the video cannot be written.
    """
    pictures: list[torch.Tensor] = []
    with closing(stage.env(1, render_mode="rgb_array")) as env:
        if not defines(env, Env.render):
            raise ConfigError(f"env {env.spec.id!r} cannot be rendered: it has no render() and render_fps")
        skip = max(1, round(env.render_fps / _FPS))
        for seed in seeds:
            steps = iter(range(sys.maxsize))

            def look(_: Any, over: Any, env: Env = env, steps: Iterator[int] = steps) -> None:
                if (next(steps) % skip == 0 or over[0]) and len(pictures) < _MOST:
                    pictures.append(torch.from_numpy(env.render()[0].copy()).permute(2, 0, 1))

            returns, lengths = play(env, stage.context, seed, look)
            yield seed, float(returns[0]), int(lengths[0])
        rlcore.write_mp4(file, torch.stack(pictures), max(1, round(env.render_fps / skip)))
