"""The memory of a batch: tensors `[time, env, ...]` on the device, and the batch `[env, time]` that views them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcore.envs import Packed, observation_dtype
from rlcore.types import CollectedBatch, Key
from rlcore_plugin_device.tensor_env import torch_dtype

if TYPE_CHECKING:
    from collections.abc import Mapping

    import gymnasium

    from rlcore_plugin_device.tensor_env import TensorStep


class Storage:
    """Where the steps of a batch are written.

    Args:
        steps: of each env.
        num_envs: how many envs there are.
        space: of one observation.
        device: of the batch.

    Attributes:
        observation: `[time + 1, env, *shape]`; the last row is what the next batch begins with.
        reward: `[time, env]`, float32.
        done: `[time, env]`, terminated or truncated.
    """

    def __init__(self, steps: int, num_envs: int, space: gymnasium.Space[Any], device: torch.device) -> None:
        assert space.shape is not None
        shape, dtype = space.shape, torch_dtype(observation_dtype(space))

        def empty(*sizes: int, dtype: torch.dtype) -> Tensor:
            return torch.zeros(sizes, dtype=dtype, device=device)

        self.observation = empty(steps + 1, num_envs, *shape, dtype=dtype)
        self.reward = empty(steps, num_envs, dtype=torch.float32)
        self.done = empty(steps, num_envs, dtype=torch.bool)
        self._final = empty(steps, num_envs, *shape, dtype=dtype)
        self._terminated = empty(steps, num_envs, dtype=torch.bool)
        self._truncated = empty(steps, num_envs, dtype=torch.bool)
        self._leaves = space if isinstance(space, Packed) else None
        self._action: Tensor | None = None
        self._described: dict[Key, Tensor] = {}

    def write(self, time: int, action: Tensor, step: TensorStep) -> None:
        """Write a step."""
        if self._action is None:
            self._action = _empty_like(action, len(self.reward))
        self._action[time] = action
        self.observation[time + 1] = step.observation
        self._final[time] = step.final_observation
        self.reward[time] = step.reward
        self._terminated[time] = step.terminated
        self._truncated[time] = step.truncated

    def finish(self) -> Tensor:
        """Fill in what follows from the steps; return the actions `[time, env, *shape]`."""
        torch.logical_or(self._terminated, self._truncated, out=self.done)
        assert self._action is not None
        return self._action

    def describe(self, described: Mapping[Any, Tensor]) -> None:
        """Write what the policy says of the actions, `[time, env, ...]` by key."""
        for key, value in described.items():
            if key not in self._described:
                self._described[key] = _empty_like(value[0], len(value))
            self._described[key].copy_(value)

    def finite(self, beside: Tensor) -> Tensor:
        """Return whether all rewards and observations are, and a number beside them, 0-d, bool."""
        rows = [self.observation, self._final]
        if self._leaves is not None:
            rows = [leaf for row in rows for leaf in self._leaves.tensors(row).values()]
        floats = [self.reward, beside, *(row for row in rows if row.is_floating_point())]
        # one sum each: a number that is not finite stays so, and `isfinite` would write as many truth values
        return torch.stack([values.sum(dtype=torch.float64) for values in floats]).isfinite().all()

    def batch(self) -> CollectedBatch:
        """Return the batch; the next one is written over it."""

        def column(tensor: Tensor) -> Tensor:
            return tensor.transpose(0, 1).unsqueeze(-1)

        assert self._action is not None
        return CollectedBatch(
            {
                "observation": self.observation[:-1].transpose(0, 1),
                "action": self._action.transpose(0, 1),
                **{key: value.transpose(0, 1) for key, value in self._described.items()},
                ("next", "observation"): self._final.transpose(0, 1),
                ("next", "reward"): column(self.reward),
                ("next", "done"): column(self.done),
                ("next", "terminated"): column(self._terminated),
                ("next", "truncated"): column(self._truncated),
            }
        )


def _empty_like(row: Tensor, steps: int) -> Tensor:
    return torch.empty((steps, *row.shape), dtype=row.dtype, device=row.device)
