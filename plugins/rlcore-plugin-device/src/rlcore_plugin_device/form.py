"""The form of tensors: what an env hands over has the shape, the dtype and the device that its spec says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcore.errors import EnvError
from rlcore_plugin_device.tensor_env import torch_dtype

if TYPE_CHECKING:
    from rlcore.types import EnvSpec
    from rlcore_plugin_device.tensor_env import TensorStep


class Form:
    """The form of the tensors of an env.

    Args:
        spec: of the env.
        device: of its tensors.
        owner: its class, for messages.
    """

    def __init__(self, spec: EnvSpec, device: torch.device, owner: str) -> None:
        space = spec.observation_space
        self._id, self._owner, self._device = spec.id, owner, device
        self._observed = (spec.num_envs, *(space.shape or ()))
        self._dtype = torch_dtype(space.dtype)
        self._each = (spec.num_envs,)

    def check_step(self, step: TensorStep) -> None:
        """Refuse a step of another form.

        Raises:
            EnvError: says what, and of which form it should be.
        """
        for name in ("observation", "final_observation"):
            self.check_observation(getattr(step, name), "step_tensors", f".{name}")
        self.check_reward(step.reward, "step_tensors", ".reward")
        for name in ("terminated", "truncated"):
            self.check_ends(getattr(step, name), "step_tensors", f".{name}")

    def check_observation(self, value: Any, method: str, of: str = "") -> None:
        """Refuse observations of another form; see `check_step`."""
        self.check(value, self._observed, self._dtype, method, of)

    def check_reward(self, value: Any, method: str, of: str = "") -> None:
        """Refuse rewards of another form; see `check_step`."""
        self.check(value, self._each, None, method, of)
        if not value.dtype.is_floating_point:
            raise self.error(f"{value.dtype}", "floats", method, of)

    def check_ends(self, value: Any, method: str, of: str = "") -> None:
        """Refuse ends of another form; see `check_step`."""
        self.check(value, self._each, torch.bool, method, of)

    def check(self, value: Any, shape: tuple[int, ...], dtype: torch.dtype | None, method: str, of: str = "") -> None:
        """Refuse what is no tensor of this shape and dtype on the device; see `check_step`."""
        if not isinstance(value, Tensor):
            raise self.error(f"{type(value).__name__}", "a tensor", method, of)
        if not is_same(value.device, self._device):
            raise self.error(f"a tensor on {value.device}", f"one on {self._device}, as self.device says", method, of)
        if tuple(value.shape) != shape:
            raise self.error(f"the shape {list(value.shape)}", f"{list(shape)}", method, of)
        if dtype is not None and value.dtype != dtype:
            raise self.error(f"{value.dtype}", f"{dtype}", method, of)

    def error(self, is_: str, expected: str, method: str, of: str = "") -> EnvError:
        """Return the error for what a method gives."""
        return EnvError(f"env {self._id!r}: {self._owner}.{method}{of} gives {is_}, not {expected}")


def is_same(device: torch.device, other: torch.device) -> bool:
    """Return whether these are one device; without a number it is the first of its kind."""
    return (device.type, device.index or 0) == (other.type, other.index or 0)


def writes_to(tensor: Tensor) -> int | None:
    """Return how often a tensor was written to; None for one of inference, which torch lets nobody write to."""
    return None if tensor.is_inference() else tensor._version
