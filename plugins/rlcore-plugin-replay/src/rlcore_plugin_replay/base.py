"""The base of replay buffers: their size, their memory, the number of minibatches after a batch, and their state."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

import torch
from pydantic import BaseModel, Field, model_validator
from torch import Tensor

from rlcore.buffers import Minibatch, most_minibatches
from rlcore.envs import observation_dtype
from rlcore.errors import RlcoreError
from rlcore.types import Context, Key, Progress, RunInfo
from rlcore_plugin_replay.drift import warn_of_drift
from rlcore_plugin_replay.pace import STATE, ReplayRatio
from rlcore_plugin_replay.room import check_room
from rlcore_plugin_replay.stacks import StackConfig
from rlcore_plugin_replay.storage import StorageKind, allocate

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import CollectedBatch

log = logging.getLogger(__name__)

INDEX: Final = "index"


class ReplayConfig(BaseModel, extra="forbid"):
    """Keys of every replay buffer."""

    capacity: int = Field(100_000, ge=1, description="transitions that are kept")
    minibatch_size: int = Field(128, ge=1, description="transitions per update")
    updates_per_batch: int = Field(
        1, ge=1, description="updates after each collected batch, unless replay_ratio says how many"
    )
    replay_ratio: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="samples that are trained on for each collected step, exactly"
    )
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
    save: Literal["full", "none"] = Field(
        "full",
        description="whether checkpoints carry the transitions",
        json_schema_extra={"free_at_resume": True},
    )

    @model_validator(mode="after")
    def _one_decides(self) -> Self:
        if self.replay_ratio is not None and self.updates_per_batch != 1:
            raise ValueError(
                f"replay_ratio = {self.replay_ratio} and updates_per_batch = {self.updates_per_batch} both say how "
                "many updates follow a batch; leave one out"
            )
        return self

    @property
    def discounts(self) -> bool:
        """Whether `gamma` has an effect."""
        return self.n_steps > 1

    @property
    def trained_steps(self) -> int:
        """Number of steps that an update trains on."""
        return self.minibatch_size


class SamplingBuffer(ABC):
    """Base of replay buffers: keeps collected steps, and samples minibatches.

    Attributes:
        num_epochs: always 1; `updates_per_batch` or `replay_ratio` says how many minibatches an iteration samples.
        warmup_frames: frames before the first update.
        writes: entries that minibatches have and batches have not.
        observations_per_row: observations that a row has.
        takes_columns: True; batches may be a `rlcore.types.CollectedBatch`.
    """

    takes_columns: Final = True
    Config: type[ReplayConfig]
    observations_per_row: ClassVar[int] = 1
    writes: tuple[Key, ...]
    _config: ReplayConfig

    def __init__(self, config: ReplayConfig, context: Context) -> None:
        self.num_epochs = 1
        self.warmup_frames = config.warmup_frames
        self._config = config
        self._context = context
        self._device = context.device if config.storage == "device" else torch.device("cpu")
        self._check_memory()
        warn_of_drift(context)
        self._generator = torch.Generator(self._device).manual_seed(context.seed("draw"))
        self._no_index = torch.empty(0, dtype=torch.int64, device=self._device)
        self._ratio: ReplayRatio | None = None
        if config.replay_ratio is not None:
            self._ratio = ReplayRatio(config.replay_ratio, config.trained_steps, context.group)

    @classmethod
    def of(
        cls, device: torch.device | str = "cpu", seed: int = 0, folder: Path | str | None = None, **settings: Any
    ) -> Self:
        """Return a buffer without a run.

        Args:
            device: of samples, and of rows with `storage = "device"`.
            seed: of the samples.
            folder: for a mapped file, in `replay/` below it; default: the folder for temporary files.
            settings: the keys of `Config`.

        Raises:
            pydantic.ValidationError: a setting is unknown or out of range.
        """
        run = RunInfo("replay", seed, total_frames=1, folder=None if folder is None else Path(folder))
        context = Context(run, torch.device(device), Progress(total_frames=1), kind="buffer", name="replay")
        return cls(cls.Config(**settings), context)

    @abstractmethod
    def __len__(self) -> int:
        """Return how many transitions or sequences can be sampled."""

    @abstractmethod
    def add(self, batch: TensorDict | CollectedBatch) -> None:
        """Copy the valid steps of a batch `[env, time]`."""

    def minibatches(self, batch: TensorDict) -> Iterator[Minibatch]:
        """Yield the minibatches after a batch; none while the buffer is empty."""
        # processes that train together take the same steps: one with an empty buffer yields minibatches without rows
        empty = not len(self)
        for _ in range(self._updates(empty)):
            yield Minibatch.of({INDEX: self._no_index}) if empty else self._draw(self._config.minibatch_size)

    def most_updates(self, batch_steps: int) -> int:
        """Return the largest number of minibatches after a batch of so many steps."""
        if self._ratio is not None:
            return self._ratio.most_updates(batch_steps)
        return self._config.updates_per_batch

    def sample(self, batch_size: int | None = None) -> TensorDict:
        """Return a random minibatch.

        Args:
            batch_size: how many samples; default: `minibatch_size`.

        Raises:
            RlcoreError: the buffer is empty.
        """
        if not len(self):
            raise RlcoreError("the replay buffer is empty; extend it before sampling")
        return self._draw(self._config.minibatch_size if batch_size is None else batch_size).to_tensordict()

    def inexact(self) -> str | None:
        """Return the reason why a resume would not be exact, if there is one."""
        if self._saves:
            return None
        return 'the replay buffer is not in the checkpoints ([buffer] save = "none"); a resume begins with an empty one'

    def _check_memory(self) -> None:
        """Refuse a capacity that the device, or the host at the end of the run, has no memory for.

        Raises:
            ConfigError: it has not.
        """
        spec, config = self._context.built.get("env_spec"), self._config
        if spec is None or config.storage == "memmap" or spec.observation_space.shape is None:
            return
        space = spec.observation_space
        observation_bytes = math.prod(space.shape) * observation_dtype(space).itemsize
        stack = config.stack if isinstance(config, StackConfig) else None
        steps = self._context.run.total_frames // spec.frame_skip
        if stack is not None:
            check_room(config.capacity, steps, observation_bytes // stack, self._device)
            return
        row_bytes = self.observations_per_row * observation_bytes
        hint = "store each frame of stacks once with stack, " if len(space.shape) > 2 else ""
        check_room(config.capacity, steps, row_bytes, self._device, hint)

    def _updates(self, empty: bool) -> int:
        if self._ratio is not None:
            return self._ratio.updates(not empty)
        count = 0 if empty else self._config.updates_per_batch
        return count if self._context.group.size == 1 else most_minibatches(self._context.group, count)

    def _sampling_state(self) -> dict[str, Any]:
        """Return the state of the generator, and the steps that the replay ratio has counted."""
        ratio = {} if self._ratio is None else {STATE: self._ratio.steps}
        return {"generator": self._generator.get_state(), **ratio}

    def _load_sampling_state(self, state: Mapping[str, Any]) -> None:
        self._generator.set_state(state["generator"])
        if self._ratio is not None:
            self._ratio.steps = state.get(STATE, 0)

    @property
    def _saves(self) -> bool:
        return self._config.save == "full"

    def _warm_up_again(self) -> None:
        """Collect `warmup_frames` again before the next update, as the checkpoint holds no transitions."""
        self.warmup_frames = self._context.progress.frames + self._config.warmup_frames

    @abstractmethod
    def _draw(self, size: int) -> Minibatch:
        """Return a random minibatch of `size` samples."""

    def _allocate(self, what: str, shape: tuple[int, int]) -> Tensor:
        """Allocate zeros `[row, word]` for rows, and log their size.

        Raises:
            StorageError: there is no room for them.
        """
        storage = allocate(self._config.storage, shape, self._device, self._context.run.folder)
        saved = (
            'a checkpoint carries those that are filled ([buffer] save = "none" leaves them out)'
            if self._saves
            else "checkpoints leave them out"
        )
        row_bytes = storage.nbytes // shape[0]
        log.info(
            "replay buffer: %s %s of %d bytes, %.1f MiB; %s",
            f"{shape[0]:,}",
            what,
            row_bytes,
            storage.nbytes / 2**20,
            saved,
        )
        return storage
