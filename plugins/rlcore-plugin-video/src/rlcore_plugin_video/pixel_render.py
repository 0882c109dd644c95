"""Renders an env at each step, and writes the pixels into the TensorDict of the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tensordict import TensorDictBase

from rlcore.errors import ConfigError, EnvError

if TYPE_CHECKING:
    from rlcore.types import Key


class PixelRenderTransform:
    """Called on the TensorDict of a step, adds what the env looks like now.

    Named after TorchRL's transform. A list of frames, as vector envs return, becomes one array.

    Args:
        out_keys: the one key to write.
        preproc: applied to what the env rendered.
        env: what is rendered: an env of rlcore made with `render_mode = "rgb_array"`, one of Gymnasium, or another.
        as_non_tensor: write the pixels as they are, without a shape that fits the TensorDict; None: only where their
            leading dimensions are not those of the TensorDict.
        render_method: name of the method that renders.
        pass_tensordict: whether the method takes the TensorDict.
        **render_arguments: passed to the method.

    Raises:
        ConfigError: not one key, or the env has no such method.
    """

    def __init__(
        self,
        out_keys: Sequence[Key] = ("pixels",),
        preproc: Callable[[Any], Any] | None = None,
        *,
        env: object,
        as_non_tensor: bool | None = None,
        render_method: str = "render",
        pass_tensordict: bool = False,
        **render_arguments: Any,
    ) -> None:
        if isinstance(out_keys, str) or len(out_keys) != 1:
            raise ConfigError(f"PixelRenderTransform writes one key; out_keys = {out_keys!r}")
        self._render = getattr(env, render_method, None)
        if not callable(self._render):
            raise ConfigError(f"PixelRenderTransform: {type(env).__name__} has no method {render_method!r}")
        self._out_key = out_keys[0]
        self._preproc = preproc
        self._as_non_tensor = as_non_tensor
        self._pass_tensordict = pass_tensordict
        self._render_arguments = render_arguments
        self._enabled = True

    @property
    def enabled(self) -> bool:
        """Whether it renders."""
        return self._enabled

    def switch(self, mode: str | bool | None = None) -> None:
        """Turn rendering on or off.

        Args:
            mode: `"on"`, `"off"`, True or False; None: the opposite of what it is now.

        Raises:
            ConfigError: another mode.
        """
        if mode is None:
            mode = not self._enabled
        if mode not in ("on", "off", True, False):
            raise ConfigError(f"PixelRenderTransform.switch: mode = {mode!r}; it is 'on', 'off', True or False")
        self._enabled = mode in ("on", True)

    def __call__(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Add the pixels, if enabled, and return the TensorDict.

        Raises:
            EnvError: the env rendered nothing, as one that was not made to render.
        """
        if not self._enabled:
            return tensordict
        assert self._render is not None
        arguments = (tensordict,) if self._pass_tensordict else ()
        pixels = self._render(*arguments, **self._render_arguments)
        if pixels is None:
            raise EnvError("the env rendered nothing; make it with render_mode = 'rgb_array'")
        if self._preproc is not None:
            pixels = self._preproc(pixels)
        if isinstance(pixels, list | tuple):
            pixels = np.stack([np.asarray(picture) for picture in pixels])
        fits = np.shape(pixels)[: tensordict.batch_dims] == tensordict.batch_size
        if self._as_non_tensor or (self._as_non_tensor is None and not fits):
            return tensordict.set_non_tensor(self._out_key, pixels)
        # a copy: an env may render into the same array again, and may hand over one that is flipped
        return tensordict.set(self._out_key, torch.as_tensor(np.array(pixels)))
