"""The replay buffer that samples uniformly: the latest transitions of a run, in packed rows.

How often each transition is sampled is all that `prioritized.py` changes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import torch
from pydantic import BaseModel, Field, model_validator
from torch import Tensor

from rlcore.buffers import Minibatch, most_minibatches
from rlcore.errors import ConfigError, RlcoreError, StorageError
from rlcore.restore import check_array
from rlcore.types import Context, Key, Progress, RunInfo
from rlcore_plugin_replay.intake import HostIntake, Intake, TensorIntake
from rlcore_plugin_replay.layout import RowLayout
from rlcore_plugin_replay.n_step import STEPS
from rlcore_plugin_replay.packing import Batch
from rlcore_plugin_replay.ring import Ring
from rlcore_plugin_replay.stacks import OBSERVATION, Stacks
from rlcore_plugin_replay.storage import StorageKind, allocate

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import CollectedBatch

log = logging.getLogger(__name__)

INDEX: Final = "index"


class ReplayBuffer:
    """Keeps the latest transitions and samples minibatches from them, uniformly and with replacement (Lin, 1992).

    As the `buffer` of a config it is what `rlcore.types.Buffer` says. In Python, `ReplayBuffer.of(...)` builds one
    without a run, for `extend`, `sample` and `update_priority`.

    Every entry of a batch is kept except the mask; masked steps are not. `index` `[sample]`, int64, says where a
    sample lies.

    Attributes:
        num_epochs: always 1; `updates_per_batch` says how many minibatches an iteration samples.
        warmup_frames: frames before the first update.
        writes: the entries of a minibatch that no batch has.
        takes_columns: True; batches may be a `rlcore.types.CollectedBatch`.
    """

    takes_columns: Final = True

    class Config(BaseModel, extra="forbid"):
        """Size and use."""

        capacity: int = Field(100_000, ge=1, description="transitions that are kept")
        minibatch_size: int = Field(128, ge=1, description="transitions per update")
        updates_per_batch: int = Field(1, ge=1, description="updates after each collected batch")
        warmup_frames: int = Field(1000, ge=0, description="frames to collect before the first update")
        n_steps: int = Field(1, ge=1, description="steps joined into one transition")
        gamma: float = Field(
            0.99,
            ge=0,
            le=1,
            description="discount of the rewards that are joined; that of the loss unless it is said here",
        )
        storage: StorageKind = Field(
            "device", description="where rows lie: the run's device, host memory, or a mapped file (memmap)"
        )
        stack: int | None = Field(
            None, ge=2, description="store each frame of stacks of so many once; default: observations as they are"
        )
        frames: int | None = Field(
            None, ge=2, description="with stack: frames that are kept; default: a 24th more than transitions"
        )
        save: Literal["full", "none"] = Field(
            "full",
            description="whether checkpoints carry the transitions",
            json_schema_extra={"free_at_resume": True},
        )

        @model_validator(mode="after")
        def _stacks(self) -> Self:
            if self.frames is not None and self.stack is None:
                raise ValueError(f"frames = {self.frames} are those of stacks; say how many each has: stack = 4")
            return self

        @property
        def discounts(self) -> bool:
            """Whether `gamma` counts."""
            return self.n_steps > 1

    def __init__(self, config: Config, context: Context) -> None:
        self.num_epochs = 1
        self.warmup_frames = config.warmup_frames
        self._config = config
        self._context = context
        on_device = config.storage == "device"
        self._device = context.device if on_device else torch.device("cpu")
        self._ring = Ring(config.capacity, partial(self._allocate, context.run.folder))
        self._stacks = None if config.stack is None else self._new_stacks(config.stack)
        self._intake = self._new_intake()
        self._generator = torch.Generator(self._device).manual_seed(context.seed("draw"))
        self._nothing = torch.empty(0, dtype=torch.int64, device=self._device)
        self.writes: tuple[Key, ...] = (INDEX,) if config.n_steps == 1 else (INDEX, STEPS)

    @classmethod
    def of(
        cls, device: torch.device | str = "cpu", seed: int = 0, folder: Path | str | None = None, **settings: Any
    ) -> Self:
        """Return a buffer that belongs to no run.

        Args:
            device: where samples go, and rows too with `storage = "device"`.
            seed: of the samples.
            folder: a mapped file lies in `replay/` below it; default: the folder for temporary files.
            settings: the keys of `Config`.

        Raises:
            pydantic.ValidationError: a setting is unknown or out of range.
        """
        run = RunInfo("replay", seed, total_frames=1, folder=None if folder is None else Path(folder))
        context = Context(run, torch.device(device), Progress(total_frames=1), kind="buffer", name="replay")
        return cls(cls.Config(**settings), context)

    def __len__(self) -> int:
        return len(self._ring)

    @property
    def write_count(self) -> int:
        """Transitions written so far, also those that were overwritten."""
        return self._ring.written

    def add(self, batch: TensorDict | CollectedBatch) -> None:
        """Copy the valid steps of a batch `[env, time]`."""
        before = self._ring.written
        taken = Batch.of(batch)
        self._intake.write(taken if self._stacks is None else self._stacks.numbered(taken))
        if self._ring.written > before:
            self._wrote(before)
            if self._stacks is not None:
                self._stacks.check_kept(self._oldest(taken.size[0]))

    def extend(self, batch: TensorDict | CollectedBatch) -> Tensor:
        """Copy the valid steps of a batch, and return the places that they took, int64 `[row]`.

        Args:
            batch: of batch size `[env, time]`, or of any other with `n_steps = 1`. With `n_steps` above 1 every call
                continues the envs of the call before.

        Raises:
            RlcoreError: its entries differ from those of the first batch, or it has not the two dimensions, the
                rewards and the ends of episodes that `n_steps` needs.
            StorageError: there is no room for the rows.
        """
        before = self._ring.written
        self.add(batch)
        kept = max(before, self._ring.written - self._config.capacity)
        return torch.arange(kept, self._ring.written, device=self._device) % self._config.capacity

    def minibatches(self, batch: TensorDict) -> Iterator[Minibatch]:
        """Yield `updates_per_batch` minibatches `[sample]`; none while the buffer is empty.

        Of several processes that train together, one whose buffer is empty yields as many, without rows.
        """
        empty = not len(self)
        count = 0 if empty else self._config.updates_per_batch
        if self._context.group.size > 1:
            count = most_minibatches(self._context.group, count)
        for _ in range(count):
            yield Minibatch.of({INDEX: self._nothing}) if empty else self._draw(self._config.minibatch_size)

    def most_updates(self, batch_steps: int) -> int:
        """Return `updates_per_batch`, whatever the steps of a batch; there are none while the buffer is empty."""
        return self._config.updates_per_batch

    def sample(self, batch_size: int | None = None) -> TensorDict:
        """Return random transitions `[sample]`.

        Args:
            batch_size: how many; default: `minibatch_size`.

        Raises:
            RlcoreError: the buffer is empty.
        """
        if not len(self):
            raise RlcoreError("the replay buffer is empty; extend it before sampling")
        return self._draw(self._config.minibatch_size if batch_size is None else batch_size).to_tensordict()

    def feedback(self, minibatch: Mapping[Key, Tensor], values: Mapping[str, Tensor]) -> None:
        """Do nothing: every transition is sampled alike."""

    def update_priority(self, index: Tensor | TensorDict, priority: Tensor | None = None) -> None:
        """Do nothing: every transition is sampled alike."""

    def inexact(self) -> str | None:
        """Return why a resume would not be exact, if so."""
        if self._config.save == "full":
            return None
        return 'the replay buffer is not in the checkpoints ([buffer] save = "none"); a resume begins with an empty one'

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the samples and, unless they are left out, the transitions."""
        state: dict[str, Any] = {"generator": self._generator.get_state()}
        if self._config.save == "full":
            state["ring"] = self._ring.state_dict()
            if self._config.n_steps > 1:
                state["n_step"] = self._intake.state_dict()
            if self._stacks is not None:
                state["stacks"] = self._stacks.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take both back; where there are no transitions, begin with another warm-up.

        Raises:
            StorageError: the transitions are those of a buffer of another size or of other envs, or there is no room
                for them.
        """
        self._check(state)
        self._generator.set_state(state["generator"])
        saved = "ring" in state
        if saved:
            self._ring.load_state_dict(state["ring"])
        else:
            self._ring = Ring(self._config.capacity, self._ring.allocate)
            self.warmup_frames = self._context.progress.frames + self._config.warmup_frames
        self._intake = self._new_intake()
        if saved and "n_step" in state:
            self._intake.load_state_dict(state["n_step"])
        if self._stacks is not None:
            self._stacks.forget()
            if "stacks" in state:
                self._stacks.load_state_dict(state["stacks"])

    def forget_episodes(self) -> None:
        """Drop the steps that wait for those after them: the collector begins new episodes."""
        self._intake.forget()
        if self._stacks is not None:
            self._stacks.forget()

    def _new_stacks(self, stack: int) -> Stacks:
        """Return where frames are stored once.

        Raises:
            ConfigError: the run's observations are no stacks of so many frames.
        """
        spec = self._context.built.get("env_spec")
        shape = None if spec is None else spec.observation_space.shape
        if shape is not None and (len(shape) < 2 or shape[0] != stack):
            raise ConfigError(
                f"[buffer] stack = {stack}: observations are {list(shape)}; their first dimension must be the {stack} "
                "frames, the oldest first, as of the env atari or of the transform frame-stack with dimension = 'first'"
            )
        capacity = self._config.capacity
        frames = self._config.frames or capacity + max(capacity // 24, 1024)
        return Stacks(stack, frames, partial(self._allocate, self._context.run.folder))

    def _oldest(self, num_envs: int) -> Tensor:
        """Return the numbers of the frames of the oldest transitions: of so many that none beyond has older ones."""
        layout, capacity = self._ring.layout, self._config.capacity
        assert layout is not None
        assert self._config.stack is not None
        count = min(len(self), 2 * num_envs * (self._config.stack + self._config.n_steps))
        first = max(0, self._ring.written - capacity)
        places = torch.arange(first, first + count, device=self._device) % capacity
        return layout.view(self._ring.rows(places), OBSERVATION)

    def _new_intake(self) -> Intake:
        kind = HostIntake if self._device.type == "cpu" else TensorIntake
        return kind(self._ring, self._config.n_steps, self._config.gamma)

    def _wrote(self, before: int) -> None:
        """Take notice of transitions that were written; there had been `before` of them."""

    def _check(self, state: Mapping[str, Any]) -> None:
        """Refuse transitions of other observations, and those that were joined otherwise.

        Raises:
            StorageError: says what differs.
        """
        entries = RowLayout.from_state(state.get("ring", {}).get("layout", [])).entries
        spec = self._context.built.get("env_spec")
        stacks = state.get("stacks")
        if entries and (stacks is None) != (self._stacks is None):
            there, here = ("whole observations", "frames") if stacks is None else ("frames", "whole observations")
            raise StorageError(f"it keeps {there} in the checkpoint, and {here} here ([buffer] stack)")
        if spec is not None and "observation" in entries:
            shape = entries["observation"][1] if stacks is None else (stacks["stack"], *stacks["shape"])
            saved = torch.empty(shape, device="meta")
            check_array("an observation", saved, spec.observation_space.shape, "[env], [[transform]]")
        if entries and (STEPS in entries) != (self._config.n_steps > 1):
            there, here = ("several steps", "one") if STEPS in entries else ("one step", "several")
            raise StorageError(
                f"its transitions are of {there} in the checkpoint, and of {here} here ([buffer] n_steps)"
            )

    def _draw(self, size: int) -> Minibatch:
        index = torch.randint(len(self), (size,), generator=self._generator, device=self._device)
        return self._gathered(index)

    def _gathered(self, index: Tensor, **further: Tensor) -> Minibatch:
        """Return the transitions at these places, and entries that do not lie in the rows."""
        layout = self._ring.layout
        assert layout is not None
        rows = self._ring.rows(index)
        if self._stacks is None:
            entries = layout.views(rows.to(self._context.device))
        else:
            entries = layout.views(rows)
            self._stacks.fill(entries, self._config.n_steps == 1)
            entries = {key: value.to(self._context.device) for key, value in entries.items()}
        entries[INDEX] = index
        for key, value in further.items():
            entries[key] = value.to(self._context.device)
        return Minibatch.of(entries)

    def _allocate(self, folder: Path | None, shape: tuple[int, int]) -> Tensor:
        found = allocate(self._config.storage, shape, self._device, folder)
        saved = (
            'a checkpoint carries those that are filled ([buffer] save = "none" leaves them out)'
            if self._config.save == "full"
            else "checkpoints leave them out"
        )
        capacity, row_bytes = shape[0], found.nbytes // shape[0]
        log.info(
            "replay buffer: %s %s of %d bytes, %.1f MiB; %s",
            f"{capacity:,}",
            "transitions" if self._stacks is None or shape[0] != self._stacks.capacity else "frames",
            row_bytes,
            found.nbytes / 2**20,
            saved,
        )
        return found
