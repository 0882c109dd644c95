"""Pictures of Gymnasium envs: without a display where there is none, and with errors that say what to install."""

from __future__ import annotations

import ctypes.util
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import gymnasium
import numpy as np

from rlcore.errors import EnvError

if TYPE_CHECKING:
    from rlcore.types import Array

_RENDER_FPS: Final = 30.0
_DISPLAYS: Final = ("DISPLAY", "WAYLAND_DISPLAY")


def render_fps(metadata: Mapping[str, Any]) -> float:
    """Return the pictures per second that show real time, as an env's metadata say; 30 where they say nothing."""
    return float(metadata.get("render_fps") or _RENDER_FPS)


def prepare_rendering() -> None:
    """Choose renderers that need no display, where there is none; variables that are set already stay."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # it goes to the standard output
    if not sys.platform.startswith("linux") or any(os.environ.get(name) for name in _DISPLAYS):
        return
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    for library, backend in (("EGL", "egl"), ("OSMesa", "osmesa")):
        if ctypes.util.find_library(library):
            os.environ.setdefault("MUJOCO_GL", backend)
            break


def advice_on_making(error: BaseException | None) -> str:
    """Return what to add to the error of an env that could not be made, which is mostly nothing.

    MuJoCo looks for the library that MUJOCO_GL names when it is imported, rendering or not.
    """
    while error is not None and os.environ.get("MUJOCO_GL"):
        frames = traceback.walk_tb(error.__traceback__)
        if any(str(frame.f_globals.get("__name__")).startswith("mujoco.") for frame, _ in frames):
            return f"; {_advice_on_mujoco()}"
        error = error.__cause__ or error.__context__
    return ""


def pictures(envs: Sequence[Any], name: str) -> Array:
    """Return what envs look like, uint8 `[env, height, width, 3]`.

    Args:
        envs: single envs, or one vector env, made with `render_mode = "rgb_array"`.
        name: for messages.

    Raises:
        EnvError: there is nothing to render with, or no such pictures come out.
    """
    images: list[Any] = []
    for env in envs:
        try:
            _take_context(env)
            rendered = env.render()
        except Exception as error:
            raise EnvError(
                f"env {name!r} cannot be rendered: {type(error).__name__}: {error}; {_advice(env, error)}"
            ) from error
        images += rendered if isinstance(rendered, list | tuple) else [rendered]
    for picture in images:
        if not (isinstance(picture, np.ndarray) and picture.dtype == np.uint8 and picture.shape[2:] == (3,)):
            what = f"{picture.dtype} {picture.shape}" if isinstance(picture, np.ndarray) else type(picture).__name__
            raise EnvError(
                f"env {name!r} rendered {what}, not an array uint8 [height, width, 3]; "
                "is it made with render_mode = 'rgb_array'?"
            )
    return np.stack(images) if images else np.empty(0)


def _advice(env: Any, error: Exception) -> str:
    if isinstance(error, gymnasium.error.DependencyNotInstalled):
        return "pip install 'rlcore-plugin-gymnasium[classic-control]' installs the renderer of classic control"
    if hasattr(env.unwrapped, "mujoco_renderer"):
        return _advice_on_mujoco()
    return "the documentation of the env says what its renderer needs"


def _advice_on_mujoco() -> str:
    return (
        "without a display MuJoCo needs a library for OpenGL: install libegl1 and libgl1-mesa-dri and set "
        f"MUJOCO_GL=egl, or libosmesa6 and MUJOCO_GL=osmesa (MUJOCO_GL is {os.environ.get('MUJOCO_GL')!r})"
    )


def _take_context(env: Any) -> None:
    """Make the OpenGL context of a MuJoCo env the current one: another env may have taken or freed it since."""
    viewer = getattr(getattr(env.unwrapped, "mujoco_renderer", None), "viewer", None)
    if viewer is not None:
        viewer.make_context_current()
