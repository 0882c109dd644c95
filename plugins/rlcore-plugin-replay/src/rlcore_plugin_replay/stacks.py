"""Stacked observations with each frame stored once: rows hold the numbers of frames instead of pixels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Final, Self

import torch
from pydantic import BaseModel, Field, model_validator
from torch import Tensor

from rlcore.errors import ConfigError, RlcoreError, StorageError
from rlcore.state import copy_in_pieces
from rlcore.types import Context, Key
from rlcore_plugin_replay.layout import WORD
from rlcore_plugin_replay.packing import Batch

OBSERVATION: Final[Key] = "observation"
FOLLOWING: Final[Key] = ("next", "observation")


class StackConfig(BaseModel):
    """Keys of stacked observations."""

    stack: int | None = Field(
        None, ge=2, description="store each frame of stacks of so many once; default: observations as they are"
    )
    frames: int | None = Field(
        None, ge=2, description="with stack: frames that are kept; default: a 24th more than transitions"
    )

    @model_validator(mode="after")
    def _stacks(self) -> Self:
        if self.frames is not None and self.stack is None:
            raise ValueError(f"frames = {self.frames} are those of stacks; say how many each has: stack = 4")
        return self


class Stacks:
    """Keeps the latest frames of stacked observations `[frame, *shape]`, the oldest frame first.

    An observation begins an episode where it differs from the one after the last step; then all of its frames are
    stored, repeated ones once. Every step adds one frame. Frames are numbered from 0 and lie in a ring.

    Args:
        stack: frames in an observation.
        capacity: number of frames to keep.
        allocate: returns zeros `[frame, word]` for a shape; called at the first frames.
    """

    def __init__(self, stack: int, capacity: int, allocate: Callable[[tuple[int, int]], Tensor]) -> None:
        self.capacity = capacity
        self._stack = stack
        self._allocate = allocate
        self._written = 0
        self._shape: tuple[int, ...] = ()
        self._dtype = torch.uint8
        self._frames: Tensor | None = None  # [frame, word]
        self._latest: Tensor | None = None  # [env, *observation], after the latest step
        self._numbers: list[list[int] | None] = []  # of their frames, by env; None where an episode begins next

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an observation; empty before the first."""
        return (self._stack, *self._shape) if self._frames is not None else ()

    def numbered(self, batch: Batch) -> Batch:
        """Store the new frames of a batch `[env, time]`, and return it with numbers of frames, int64 `[..., frame]`.

        Raises:
            RlcoreError: an observation is no stack of so many frames, or not the last one moved on by a frame.
            StorageError: there is no room for the frames.
        """
        observation, following = batch.columns[OBSERVATION], batch.columns[FOLLOWING]
        self._check_form(observation, len(batch.size))
        valid = _valid(batch)
        begins, repeats, moved = self._compare(observation, following, valid)
        numbers, following_numbers, sources = self._count(begins, repeats, moved, valid)
        self._store(observation, following, sources)
        self._latest = following[:, -1].clone()
        columns = {
            **batch.columns,
            OBSERVATION: _numbers(numbers, following),
            FOLLOWING: _numbers(following_numbers, following),
        }
        return Batch(columns, batch.mask, batch.size)

    def stacked(self, numbers: Tensor) -> Tensor:
        """Return the frames of these numbers, int64 `[sample, frame]`, as `[sample, frame, *shape]`."""
        assert self._frames is not None
        rows = self._frames.index_select(0, (numbers % self.capacity).reshape(-1))
        flat = rows.view(self._dtype)
        size = prod(self._shape)
        if flat.shape[1] != size:
            flat = flat[:, :size].contiguous()
        return flat.view(*numbers.shape, *self._shape)

    def fill(self, entries: dict[Key, Tensor], one_step: bool) -> None:
        """Replace the numbers of frames in samples by observations.

        Args:
            entries: of samples.
            one_step: whether next observations are one frame further, so that shared frames are read once.
        """
        observations, following = entries[OBSERVATION], entries[FOLLOWING]
        if one_step:
            frames = self.stacked(torch.cat([observations, following[:, -1:]], 1))
            entries[OBSERVATION], entries[FOLLOWING] = frames[:, :-1], frames[:, 1:]
        else:
            frames = self.stacked(torch.cat([observations, following], 1))
            entries[OBSERVATION], entries[FOLLOWING] = frames[:, : self._stack], frames[:, self._stack :]

    def check_kept(self, numbers: Tensor) -> None:
        """Refuse to go on where a frame of the oldest transitions was overwritten.

        Args:
            numbers: of the frames of the oldest transitions.

        Raises:
            RlcoreError: one was.
        """
        if self._written > self.capacity and int(numbers.min()) < self._written - self.capacity:
            raise RlcoreError(
                f"[buffer] frames = {self.capacity:,} are too few: episodes are short, and each begins with frames of "
                f"its own; set frames = {2 * self.capacity:,}, or a lower capacity"
            )

    def forget(self) -> None:
        """Begin a new episode in every env."""
        self._latest, self._numbers = None, []

    def state_dict(self) -> dict[str, Any]:
        """Return the filled frames as a view, and the latest stacks."""
        state: dict[str, Any] = {"capacity": self.capacity, "written": self._written, "stack": self._stack}
        if self._frames is not None:
            filled = self._frames[: min(self._written, self.capacity)]
            # through NumPy: a slice of torch would save the whole storage, and this view has a size of its own
            if filled.device.type == "cpu":
                filled = torch.from_numpy(filled.numpy())
            state |= {
                "shape": list(self._shape),
                "dtype": str(self._dtype).removeprefix("torch."),
                "frames": filled,
                "latest": self._latest,
                "numbers": self._numbers,
            }
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the frames.

        Raises:
            StorageError: they are of a buffer of another size, or there is no room.
        """
        if (state["capacity"], state["stack"]) != (self.capacity, self._stack):
            raise StorageError(
                f"the replay buffer of the checkpoint keeps {state['capacity']:,} frames for stacks of {state['stack']}"
                f", and this one {self.capacity:,} for stacks of {self._stack} ([buffer] frames, stack)"
            )
        self.forget()
        self._written = state["written"]
        if "frames" not in state:
            return
        self._begin(tuple(state["shape"]), getattr(torch, state["dtype"]))
        assert self._frames is not None
        copy_in_pieces(self._frames[: state["frames"].shape[0]], state["frames"])
        latest = state["latest"]
        self._latest = None if latest is None else latest.clone().to(self._frames.device)
        self._numbers = [None if numbers is None else [*numbers] for numbers in state["numbers"]]

    def _check_form(self, observation: Tensor, dims: int) -> None:
        if dims != 2:
            raise RlcoreError("a replay buffer with [buffer] stack takes batches [env, time]")
        shape = tuple(observation.shape[2:])
        if len(shape) < 2 or shape[0] != self._stack:
            raise RlcoreError(
                f"[buffer] stack = {self._stack}: observations are {list(shape)}; their first dimension must be the "
                f"{self._stack} frames"
            )
        if self._frames is None:
            self._begin(shape[1:], observation.dtype)
        elif (shape[1:], observation.dtype) != (self._shape, self._dtype):
            raise RlcoreError(
                f"[buffer] stack: frames are {observation.dtype} {list(shape[1:])}, and were {self._dtype} "
                f"{list(self._shape)}"
            )

    def _begin(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        self._shape, self._dtype = shape, dtype
        words = -(-prod(shape) * dtype.itemsize // WORD.itemsize)
        self._frames = self._allocate((self.capacity, words))

    def _compare(
        self, observation: Tensor, following: Tensor, valid: list[list[bool]]
    ) -> tuple[list[list[bool]], dict[tuple[int, int], list[bool]], list[list[bool]]]:
        """Return which observations begin an episode, which frames of these repeat, and which move on."""
        begins = torch.ones(observation.shape[:2], dtype=torch.bool, device=observation.device)
        begins[:, 1:] = ~_equal(observation[:, 1:], following[:, :-1], 2)
        if self._latest is not None and len(self._latest) == len(observation):
            begins[:, 0] = ~_equal(observation[:, 0], self._latest.to(observation.device), 1)
        moved: list[list[bool]] = _equal(observation[:, :, 1:], following[:, :, :-1], 2).tolist()
        flags: list[list[bool]] = begins.tolist()
        # an invalid step only resets its env, so the next observation begins an episode
        for env, row in enumerate(flags):
            row[0] = row[0] or env >= len(self._numbers) or self._numbers[env] is None
            row[1:] = [begin or not step for begin, step in zip(row[1:], valid[env][:-1], strict=True)]
        places = [(env, time) for env, row in enumerate(flags) for time, begin in enumerate(row) if begin]
        if not places:
            return flags, {}, moved
        env_of, time_of = torch.tensor(places, device=observation.device).unbind(1)
        first = observation[env_of, time_of]
        repeats: list[list[bool]] = _equal(first[:, 1:], first[:, :-1], 2).tolist()
        return flags, dict(zip(places, repeats, strict=True)), moved

    def _count(
        self,
        begins: list[list[bool]],
        repeats: Mapping[tuple[int, int], list[bool]],
        moved: list[list[bool]],
        valid: list[list[bool]],
    ) -> tuple[list[list[list[int]]], list[list[list[int]]], list[tuple[int, int, int]]]:
        """Number the frames in the order of time.

        Returns:
            The numbers of each observation before and after a step, `[env][time][frame]`; and the source of each new
            frame, `(env, time, frame)`, where the newest frame of the next observation is number `stack`.
        """
        num_envs, steps = len(begins), len(begins[0])
        current: list[list[int] | None] = self._numbers if len(self._numbers) == num_envs else [None] * num_envs
        before: list[list[list[int]]] = [[] for _ in range(num_envs)]
        after: list[list[list[int]]] = [[] for _ in range(num_envs)]
        sources: list[tuple[int, int, int]] = []
        for time in range(steps):
            for env in range(num_envs):
                numbers = current[env]
                if numbers is None or begins[env][time]:
                    numbers = self._episode_start(env, time, repeats[env, time], sources)
                before[env].append(numbers)
                if valid[env][time]:
                    if not moved[env][time]:
                        raise RlcoreError(
                            f"[buffer] stack = {self._stack}: the observation after a step of env {env} is not the one "
                            "before, moved on by one frame; the env must return its latest frames, the oldest first, "
                            "or stack must be left out"
                        )
                    numbers = [*numbers[1:], self._written + len(sources)]
                    sources.append((env, time, self._stack))
                after[env].append(numbers)
                current[env] = numbers if valid[env][time] else None
        self._numbers = current
        return before, after, sources

    def _episode_start(
        self, env: int, time: int, repeats: list[bool], sources: list[tuple[int, int, int]]
    ) -> list[int]:
        """Number the frames of an observation that begins an episode."""
        numbers: list[int] = []
        for frame, repeated in enumerate([False, *repeats]):
            if not repeated:
                sources.append((env, time, frame))
            numbers.append(self._written + len(sources) - 1)
        return numbers

    def _store(self, observation: Tensor, following: Tensor, sources: list[tuple[int, int, int]]) -> None:
        """Copy new frames into their places."""
        assert self._frames is not None
        if len(sources) > self.capacity:
            raise RlcoreError(f"[buffer] frames = {self.capacity:,} are fewer than a batch brings, {len(sources):,}")
        where = torch.tensor(sources, device=observation.device).unbind(1)
        env, time, frame = where
        of_next = frame == self._stack
        new = observation[env, time, frame.clamp(max=self._stack - 1)]
        new[of_next] = following[env[of_next], time[of_next], -1]
        places = (torch.arange(len(sources)) + self._written) % self.capacity
        size = prod(self._shape) * self._dtype.itemsize
        flat = new.flatten(1).contiguous().view(torch.uint8)
        self._frames.view(torch.uint8)[places.to(self._frames.device), :size] = flat.to(self._frames.device)
        self._written += len(sources)


def stacks_of(
    config: StackConfig, capacity: int, context: Context, allocate: Callable[[tuple[int, int]], Tensor]
) -> Stacks | None:
    """Return the `Stacks` of a buffer; None where rows hold whole observations.

    Args:
        config: of the buffer.
        capacity: number of transitions or steps.
        context: of the buffer; without a spec of the env, the observations are not checked.
        allocate: as for `Stacks`.

    Raises:
        ConfigError: the observations of the run are no stacks of so many frames.
    """
    stack = config.stack
    if stack is None:
        return None
    spec = context.built.get("env_spec")
    shape = None if spec is None else spec.observation_space.shape
    if shape is not None and (len(shape) < 2 or shape[0] != stack):
        raise ConfigError(
            f"[buffer] stack = {stack}: observations are {list(shape)}; their first dimension must be the {stack} "
            "frames, the oldest first, as of the env atari or of the transform frame-stack with dimension = 'first'"
        )
    return Stacks(stack, config.frames or capacity + max(capacity // 24, 1024), allocate)


def check_same_kind(saved: object, here: object) -> None:
    """Refuse a checkpoint with frames for a buffer with whole observations, and the other way round.

    Args:
        saved: frames of the checkpoint; None where observations are whole.
        here: frames of the buffer; None where observations are whole.

    Raises:
        StorageError: one has frames, and the other has none.
    """
    if (saved is None) != (here is None):
        kinds = ("whole observations", "frames") if saved is None else ("frames", "whole observations")
        raise StorageError(f"it keeps {kinds[0]} in the checkpoint, and {kinds[1]} here ([buffer] stack)")


def _equal(one: Tensor, other: Tensor, dims: int) -> Tensor:
    """Return where two tensors are equal, over their first `dims` dimensions."""
    return (one == other).flatten(dims).all(-1)


def _valid(batch: Batch) -> list[list[bool]]:
    """Return the mask of a batch `[env, time]` as lists."""
    num_envs, steps = batch.size
    if batch.mask is None:
        return [[True] * steps for _ in range(num_envs)]
    valid: list[list[bool]] = batch.mask.reshape(num_envs, steps).tolist()
    return valid


def _numbers(of_envs: list[list[list[int]]], like: Tensor) -> Tensor:
    """Return numbers of frames as a tensor on the device of a batch."""
    return torch.tensor(of_envs, device=like.device)
