"""Stacked observations whose frames are stored once: transitions have the numbers of their frames instead of pixels."""

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
    """Which observations are stacks."""

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
    """The latest frames of a stream of stacked observations `[frame, *shape]`, the oldest frame first.

    An observation that is not the one after the step before begins an episode, and brings all of its frames; those that
    are repeated are stored once. Every step brings one more. Frames count up from 0, and take places in a ring.

    Args:
        stack: frames in an observation.
        capacity: frames that are kept.
        allocate: returns zeros `[frame, word]` for a shape; called when the first frames come.
    """

    def __init__(self, stack: int, capacity: int, allocate: Callable[[tuple[int, int]], Tensor]) -> None:
        self.capacity = capacity
        self._stack = stack
        self._allocate = allocate
        self._written = 0
        self._shape: tuple[int, ...] = ()
        self._dtype = torch.uint8
        self._frames: Tensor | None = None  # [frame, word]
        self._latest: Tensor | None = None  # [env, *observation], after the latest steps
        self._numbers: list[list[int] | None] = []  # of their frames, by env; None where an episode begins next

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an observation; empty while there was none."""
        return (self._stack, *self._shape) if self._frames is not None else ()

    def numbered(self, batch: Batch) -> Batch:
        """Store the new frames of a batch `[env, time]`, and return it with numbers of frames, int64 `[..., frame]`.

        Raises:
            RlcoreError: an observation is no stack of so many frames, or is not the one before, moved on by a frame.
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
        """Put the observations in the place of their numbers.

        Args:
            entries: of samples.
            one_step: whether the observations after are those before moved on by one frame, which are fetched once.
        """
        observations, following = entries[OBSERVATION], entries[FOLLOWING]
        if one_step:
            frames = self.stacked(torch.cat([observations, following[:, -1:]], 1))
            entries[OBSERVATION], entries[FOLLOWING] = frames[:, :-1], frames[:, 1:]
        else:
            frames = self.stacked(torch.cat([observations, following], 1))
            entries[OBSERVATION], entries[FOLLOWING] = frames[:, : self._stack], frames[:, self._stack :]

    def check_kept(self, numbers: Tensor) -> None:
        """Refuse to go on where a frame of these numbers, of the oldest transitions, has given way to another.

        Raises:
            RlcoreError: one has.
        """
        if self._written > self.capacity and int(numbers.min()) < self._written - self.capacity:
            raise RlcoreError(
                f"[buffer] frames = {self.capacity:,} are too few: episodes are short, and each begins with frames of "
                f"its own; set frames = {2 * self.capacity:,}, or a lower capacity"
            )

    def forget(self) -> None:
        """Let every env begin an episode next."""
        self._latest, self._numbers = None, []

    def state_dict(self) -> dict[str, Any]:
        """Return the frames that are kept, as a view that shares no storage with what is not, and the latest stacks."""
        state: dict[str, Any] = {"capacity": self.capacity, "written": self._written, "stack": self._stack}
        if self._frames is not None:
            filled = self._frames[: min(self._written, self.capacity)]
            if filled.device.type == "cpu":  # through NumPy, whose view is a storage of its own size, not a copy
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
        """Take the frames back.

        Raises:
            StorageError: they are those of another number of frames, or there is no room.
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
        """Return which observations begin an episode, which of their frames repeat the one before, which move on."""
        begins = torch.ones(observation.shape[:2], dtype=torch.bool, device=observation.device)
        begins[:, 1:] = ~_equal(observation[:, 1:], following[:, :-1], 2)
        if self._latest is not None and len(self._latest) == len(observation):
            begins[:, 0] = ~_equal(observation[:, 0], self._latest.to(observation.device), 1)
        moved: list[list[bool]] = _equal(observation[:, :, 1:], following[:, :, :-1], 2).tolist()
        flags: list[list[bool]] = begins.tolist()
        for env, row in enumerate(flags):  # a step that only resets leads to the beginning of an episode
            row[0] = row[0] or env >= len(self._numbers) or self._numbers[env] is None
            row[1:] = [begun or not before for begun, before in zip(row[1:], valid[env][:-1], strict=True)]
        places = [(env, time) for env, row in enumerate(flags) for time, begun in enumerate(row) if begun]
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
            The numbers of each observation before and after a step, `[env][time][frame]`; and where each new frame is,
            `(env, time, frame)`, with one more than the stack has for that of the observation after.
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
                    numbers = self._first(env, time, repeats[env, time], sources)
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

    def _first(self, env: int, time: int, repeats: list[bool], sources: list[tuple[int, int, int]]) -> list[int]:
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
    """Return where frames are stored once; None where observations are stored as they are.

    Args:
        config: says so.
        capacity: transitions, or steps, that are kept.
        context: with the env's spec, where there is one.
        allocate: as for `Stacks`.

    Raises:
        ConfigError: the run's observations are no stacks of so many frames.
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
    """Refuse observations of a checkpoint that are stored otherwise.

    Args:
        saved: what is saved of frames; None where observations are whole.
        here: what there is of frames here; None where observations are whole.

    Raises:
        StorageError: one has frames, and the other has none.
    """
    if (saved is None) != (here is None):
        kinds = ("whole observations", "frames") if saved is None else ("frames", "whole observations")
        raise StorageError(f"it keeps {kinds[0]} in the checkpoint, and {kinds[1]} here ([buffer] stack)")


def _equal(one: Tensor, other: Tensor, dims: int) -> Tensor:
    """Return where two tensors are equal in everything but their first dimensions."""
    return (one == other).flatten(dims).all(-1)


def _valid(batch: Batch) -> list[list[bool]]:
    """Return the mask of a batch `[env, time]` as lists."""
    num_envs, steps = batch.size
    if batch.mask is None:
        return [[True] * steps for _ in range(num_envs)]
    valid: list[list[bool]] = batch.mask.reshape(num_envs, steps).tolist()
    return valid


def _numbers(of_envs: list[list[list[int]]], like: Tensor) -> Tensor:
    """Return numbers of frames as a tensor, where a batch is."""
    return torch.tensor(of_envs, device=like.device)
