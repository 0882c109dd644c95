"""The memory of a batch: arrays `[time, env, ...]`, allocated once, and the batch `[env, time]` that views them.

Nothing is created, stacked or sliced per key and step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rlcore.envs.episode_starts import write_mask
from rlcore.envs.transformed import observation_dtype
from rlcore.errors import ConfigError
from rlcore.types.records import MASK

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types.records import Array, BoolArray

Layout = dict[str, tuple[tuple[int, ...], np.dtype[Any]]]


def layout_of(steps: int, num_envs: int, space: Any) -> Layout:
    """Return shape and dtype of every array of a batch, but for what the policy gives.

    Args:
        steps: of each env.
        num_envs: how many envs there are.
        space: of one observation.

    Raises:
        ConfigError: observations are not one array.
    """
    if space.shape is None or space.dtype is None:
        raise ConfigError(
            f"the collector takes observations of one array, not {space}; flatten them with a wrapper or transform"
        )
    dtype = np.dtype(observation_dtype(space))
    flags = ("terminated", "truncated", "done", "mask")
    return {
        "observation": ((steps + 1, num_envs, *space.shape), dtype),
        "next_observation": ((steps, num_envs, *space.shape), dtype),
        "reward": ((steps, num_envs), np.dtype(np.float32)),
        **{name: ((steps, num_envs), np.dtype(bool)) for name in flags},
    }


class BatchStorage:
    """Where the steps of a batch are written.

    Args:
        arrays: as `layout_of` describes them; their content does not matter.
        masked: whether some steps only reset, so that the batch has a mask.
        action: `[time, env, *action]`, and
        described: what the policy says of the actions, `[time, env, ...]`; made at the first batch when left out.

    Attributes:
        observation: `[time + 1, env, *shape]`; the last row is what the next batch begins with.
        next_observation: `[time, env, *shape]`, at the end of an episode its last observation.
        reward: `[time, env]`, float32.
        terminated: `[time, env]`.
        truncated: `[time, env]`.
        done: `[time, env]`, either of them.
        mask: `[time, env]`, False for a step that only resets.
        final: last observations of episodes by (time, env), until `finish`.
        rows: the observations `[env, *shape]` to act on, one tensor for each step.
    """

    def __init__(
        self,
        arrays: Mapping[str, Array],
        masked: bool,
        action: Tensor | None = None,
        described: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.observation = arrays["observation"]
        self.next_observation = arrays["next_observation"]
        self.reward = arrays["reward"]
        self.terminated = arrays["terminated"]
        self.truncated = arrays["truncated"]
        self.done = arrays["done"]
        self.mask = arrays["mask"]
        self.mask[:] = True
        self.final: dict[tuple[int, int], Array] = {}
        self.rows = torch.from_numpy(self.observation)[:-1].unbind(0)
        self._arrays = arrays
        self._masked = masked
        self._action = action
        self._described = dict(described or {})
        self._template: TensorDict | None = None

    @classmethod
    def allocated(cls, steps: int, num_envs: int, space: Any, masked: bool) -> BatchStorage:
        """Return storage in the memory of this process; the arguments are those of `layout_of`."""
        layout = layout_of(steps, num_envs, space)
        return cls({name: _zeros(shape, dtype) for name, (shape, dtype) in layout.items()}, masked)

    def share(self, envs: slice) -> BatchStorage:
        """Return the storage of some of the envs, over the same memory; actions must have their place already."""
        assert self._action is not None
        return BatchStorage(
            {name: array[:, envs] for name, array in self._arrays.items()},
            self._masked,
            self._action[:, envs],
            {name: value[:, envs] for name, value in self._described.items()},
        )

    def finish(self, ended_before: BoolArray) -> None:
        """Fill in what follows from the steps: `done`, next observations, mask.

        Args:
            ended_before: `[env]`, whether the episode ended with the last step of the batch before.
        """
        np.logical_or(self.terminated, self.truncated, out=self.done)
        self.next_observation[:] = self.observation[1:]
        for place, observation in self.final.items():
            self.next_observation[place] = observation
        self.final.clear()
        if self._masked:
            write_mask(self.mask, self.done, ended_before)

    def set_actions(
        self,
        actions: list[Tensor],
        parameters: list[Tensor],
        describe: Callable[[Tensor, Tensor], Mapping[str, Tensor]],
    ) -> None:
        """Store the actions of the batch and what the policy says of them, which `describe` returns."""
        stacked = torch.stack(actions)
        described = describe(torch.stack(parameters), stacked.to(parameters[0].device))
        if self._action is None:
            with torch.inference_mode(False):
                self._action = torch.empty(stacked.shape, dtype=stacked.dtype)
                self._described = {
                    name: torch.empty(value.shape, dtype=value.dtype, device=value.device)
                    for name, value in described.items()
                }
        self._action.copy_(stacked)
        for name, value in described.items():
            self._described[name].copy_(value)

    @property
    def actions(self) -> Tensor:
        """The actions of the batch `[time, env, *action]`, once there are any."""
        assert self._action is not None
        return self._action

    def not_finite(self) -> tuple[str, tuple[int, int], float] | None:
        """Return the first value that is not finite: which entry, at which (time, env), and what it is."""
        for name, values in (
            ("reward", self.reward),
            ("observation", self.observation),
            ("final observation", self.next_observation),
        ):
            if values.dtype.kind == "f" and not np.isfinite(values.sum()):
                bad = np.argwhere(~np.isfinite(values))
                if len(bad):
                    return name, (int(bad[0][0]), int(bad[0][1])), values[tuple(bad[0])]
        return None

    def batch(self) -> TensorDict:
        """Return the batch; the TensorDict is new, its tensors are views."""
        if self._template is None:
            self._template = self._view()
        return self._template.copy()

    def _view(self) -> TensorDict:
        from tensordict import TensorDict

        def column(array: Array) -> Tensor:
            return torch.from_numpy(array).transpose(0, 1).unsqueeze(-1)

        steps, num_envs = self.reward.shape
        size = [num_envs, steps]
        assert self._action is not None
        following = {
            "observation": torch.from_numpy(self.next_observation).transpose(0, 1),
            "reward": column(self.reward),
            "done": column(self.done),
            "terminated": column(self.terminated),
            "truncated": column(self.truncated),
        }
        entries: dict[str, Any] = {
            "observation": torch.from_numpy(self.observation)[:-1].transpose(0, 1),
            "action": self._action.transpose(0, 1),
            **{name: value.transpose(0, 1) for name, value in self._described.items()},
            "next": TensorDict(following, batch_size=size),
        }
        batch = TensorDict(entries, batch_size=size)
        if self._masked:
            batch.set(MASK, column(self.mask))
        return batch


def _zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return zeros that begin where torch's own tensors do: the bits of a product of matrices depend on it."""
    size = math.prod(shape) * dtype.itemsize
    return torch.zeros(size, dtype=torch.uint8).numpy().view(dtype).reshape(shape)
