"""The memory of a batch: arrays `[time, env, ...]`, allocated once, and the batch `[env, time]` that views them.

Nothing is created, stacked or sliced per key and step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import Tensor

from rlcore.envs import Packed, observation_dtype, write_mask
from rlcore.errors import ConfigError
from rlcore.types import CollectedBatch

if TYPE_CHECKING:
    from rlcore.types import Array, BoolArray, Key

# floats up to which the length of a vector is found faster than its sum
_FEW: Final = 4096

_FINAL: Final = "final observation"

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


def _floats_of(arrays: Mapping[str, Array], space: Any) -> dict[str, Array]:
    """Return what may be not finite of the arrays of a batch, by what it is called in messages."""
    entries = {"reward": arrays["reward"]}
    for name, key in (("observation", "observation"), (_FINAL, "next_observation")):
        if isinstance(space, Packed):
            floats = [leaf for leaf, dtype in space.dtypes.items() if dtype.kind == "f"]
            entries |= {f"{name} (leaf {leaf!r})": space.array(arrays[key], leaf) for leaf in floats}
        elif arrays[key].dtype.kind == "f":
            entries[name] = arrays[key]
    return entries


class BatchStorage:
    """Where the steps of a batch are written.

    Args:
        arrays: as `layout_of` describes them; their content does not matter. Without `next_observation` it is
            `observation` from its second row on, the same memory, as is right where no episode ends within a step.
        masked: whether some steps only reset, so that the batch has a mask.
        action: `[time, env, *action]`, and
        described: what the policy says of the actions, `[time, env, ...]`; made at the first batch when left out.
        space: of one observation; of a packed one the leaves that hold floats are looked at.

    Attributes:
        observation: `[time + 1, env, *shape]`; the last row is what the next batch begins with.
        next_observation: `[time, env, *shape]`, at the end of an episode its last observation.
        reward: `[time, env]`, float32.
        terminated: `[time, env]`.
        truncated: `[time, env]`.
        done: `[time, env]`, either of them.
        mask: `[time, env]`, False for a step that only resets.
        final: last observations of episodes by (time, env), until `finish`.
        actions: `[time, env, *action]`; None while there are none.
        rows: the observations `[env, *shape]` to act on, one tensor for each step.
    """

    def __init__(
        self,
        arrays: Mapping[str, Array],
        masked: bool,
        action: Tensor | None = None,
        described: Mapping[Any, Tensor] | None = None,
        space: Any = None,
    ) -> None:
        self.observation = arrays["observation"]
        self._shifted = "next_observation" not in arrays
        if self._shifted:
            arrays = {**arrays, "next_observation": self.observation[1:]}
        self.next_observation = arrays["next_observation"]
        self.reward = arrays["reward"]
        self.terminated = arrays["terminated"]
        self.truncated = arrays["truncated"]
        self.done = arrays["done"]
        self.mask = arrays["mask"]
        self.mask[:] = True
        self.final: dict[tuple[int, int], Array] = {}
        self.rows = torch.from_numpy(self.observation)[:-1].unbind(0)
        self._any_final = False
        self._floats = _floats_of(arrays, space)
        self._flat = [(name, _few_in_a_row(values), name.startswith(_FINAL)) for name, values in self._floats.items()]
        self._arrays = arrays
        self._space = space
        self._masked = masked
        self._action = action
        self.actions = None if action is None else action.numpy()
        self._described = dict(described or {})
        self._batch: CollectedBatch | None = None

    @classmethod
    def allocated(cls, steps: int, num_envs: int, space: Any, masked: bool) -> BatchStorage:
        """Return storage in the memory of this process; the arguments are those of `layout_of`.

        Where `masked`, an episode's last observation comes before a step that only resets, so that each observation is
        kept once.
        """
        layout = layout_of(steps, num_envs, space)
        if masked:
            del layout["next_observation"]
        return cls({name: _zeros(shape, dtype) for name, (shape, dtype) in layout.items()}, masked, space=space)

    def share(self, envs: slice) -> BatchStorage:
        """Return the storage of some of the envs, over the same memory; actions must have their place already."""
        assert self._action is not None
        return BatchStorage(
            {name: array[:, envs] for name, array in self._arrays.items()},
            self._masked,
            self._action[:, envs],
            {name: value[:, envs] for name, value in self._described.items()},
            self._space,
        )

    def finish(self, ended_before: BoolArray) -> None:
        """Fill in what follows from the steps: `done`, next observations, mask.

        Args:
            ended_before: `[env]`, whether the episode ended with the last step of the batch before.
        """
        np.logical_or(self.terminated, self.truncated, out=self.done)
        if not self._shifted:
            self.next_observation[:] = self.observation[1:]
        self._any_final = bool(self.final)
        assert not (self._shifted and self._any_final), "an episode ended within a step"
        for place, observation in self.final.items():
            self.next_observation[place] = observation
        self.final.clear()
        if self._masked:
            write_mask(self.mask, self.done, ended_before)

    def actions_like(self, action: Tensor) -> Array:
        """Return where the actions of a batch go, `[time, env, *action]`; made when the first come."""
        if self.actions is None:
            with torch.inference_mode(False):
                self._action = torch.empty((len(self.rows), *action.shape), dtype=action.dtype)
            self.actions = self._action.numpy()
        return self.actions

    def describe_actions(
        self,
        parameters: list[Tensor] | None,
        describe: Callable[[Tensor, Tensor], Mapping[Any, Tensor]],
    ) -> None:
        """Store what the policy says of the actions of the batch, which `describe` returns.

        Args:
            parameters: of each step; None where they are the actions, as of a policy that has nothing to describe.
            describe: of the policy.
        """
        actions = self._action
        assert actions is not None
        if parameters is None:
            described = describe(actions, actions)
        else:
            described = describe(torch.stack(parameters), actions.to(parameters[0].device))
        for name, value in described.items():
            if name not in self._described:
                with torch.inference_mode(False):
                    self._described[name] = torch.empty(value.shape, dtype=value.dtype, device=value.device)
            self._described[name].copy_(value)

    def not_finite(self) -> tuple[str, tuple[int, int], float] | None:
        """Return the first value that is not finite: which entry, at which (time, env), and what it is."""
        for name, flat, is_final in self._flat:
            if is_final and not self._any_final:
                continue  # each is one of the observations
            values = self._floats[name]
            if not math.isfinite(values.sum() if flat is None else flat.dot(flat)):  # large ones may overflow too
                bad = np.argwhere(~np.isfinite(values))
                if len(bad):
                    return name, (int(bad[0][0]), int(bad[0][1])), values[tuple(bad[0])]
        return None

    def batch(self) -> CollectedBatch:
        """Return the batch; from call to call it is the same, with other numbers."""
        if self._batch is None:
            self._batch = self._viewed()
        return self._batch

    def _viewed(self) -> CollectedBatch:
        def column(array: Array) -> Tensor:
            return torch.from_numpy(array).transpose(0, 1).unsqueeze(-1)

        assert self._action is not None
        columns: dict[Key, Tensor] = {
            "observation": torch.from_numpy(self.observation)[:-1].transpose(0, 1),
            "action": self._action.transpose(0, 1),
            **{name: value.transpose(0, 1) for name, value in self._described.items()},
            ("next", "observation"): torch.from_numpy(self.next_observation).transpose(0, 1),
            ("next", "reward"): column(self.reward),
            ("next", "done"): column(self.done),
            ("next", "terminated"): column(self.terminated),
            ("next", "truncated"): column(self.truncated),
        }
        mask = column(self.mask) if self._masked else None
        return CollectedBatch(columns, mask, (("next", "observation"),) if self._shifted else ())


def _few_in_a_row(values: Array) -> Array | None:
    """Return a view of a few floats in one dimension; None where there are many, or none can be had."""
    few = values.size <= _FEW and values.dtype == np.float32 and values.flags.c_contiguous
    return values.reshape(-1) if few else None


def _zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return zeros that begin where torch's own tensors do: the bits of a product of matrices depend on it."""
    size = math.prod(shape) * dtype.itemsize
    return torch.zeros(size, dtype=torch.uint8).numpy().view(dtype).reshape(shape)
