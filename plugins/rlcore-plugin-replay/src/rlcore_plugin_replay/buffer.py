"""The replay buffer `replay`: the latest transitions in packed rows, sampled uniformly."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcore.buffers import Minibatch
from rlcore.errors import StorageError
from rlcore.state import check_array
from rlcore.types import Context, Key
from rlcore_plugin_replay.base import INDEX, ReplayConfig, SamplingBuffer
from rlcore_plugin_replay.intake import HostIntake, Intake, TensorIntake
from rlcore_plugin_replay.layout import RowLayout
from rlcore_plugin_replay.n_step import STEPS
from rlcore_plugin_replay.packing import Batch
from rlcore_plugin_replay.ring import Ring
from rlcore_plugin_replay.row_minibatch import RowMinibatch
from rlcore_plugin_replay.stacks import OBSERVATION, StackConfig, Stacks, check_same_kind, stacks_of
from rlcore_plugin_replay.takes_sequences import take_steps

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import CollectedBatch


class ReplayBuffer(SamplingBuffer):
    """Keeps the latest transitions and samples minibatches from them, uniformly and with replacement (Lin, 1992).

    In a config it is a `rlcore.types.Buffer`. In Python, `ReplayBuffer.of(...)` builds one without a run, for `extend`,
    `sample` and `update_priority`.

    Rows hold all entries of a batch but the mask; masked steps are left out. The entry `index` `[sample]`, int64, is
    the place of a sample.

    Attributes:
        takes_some_envs: whether a batch may hold some of the envs alone, as where no row joins steps of two batches.
    """

    class Config(StackConfig, ReplayConfig):
        """Keys of `[buffer]`."""

    observations_per_row = 2
    _config: Config

    def __init__(self, config: ReplayConfig, context: Context) -> None:
        super().__init__(config, context)
        take_steps(context.built.get("loss"))
        self._on_run_device = self._device == context.device
        self._ring = Ring(config.capacity, partial(self._allocate, "transitions"))
        self._stacks: Stacks | None = None
        if isinstance(config, StackConfig):
            self._stacks = stacks_of(config, config.capacity, context, partial(self._allocate, "frames"))
        self._intake = self._new_intake()
        self.takes_some_envs = config.n_steps == 1 and self._stacks is None
        self.writes: tuple[Key, ...] = (INDEX,) if config.n_steps == 1 else (INDEX, STEPS)

    def __len__(self) -> int:
        return len(self._ring)

    @property
    def _joined_steps(self) -> int:
        """Number of steps that a row joins."""
        return self._config.n_steps

    @property
    def write_count(self) -> int:
        """Number of transitions written so far, with those that were overwritten since."""
        return self._ring.written

    def add(self, batch: TensorDict | CollectedBatch) -> None:
        """Copy the valid steps of a batch `[env, time]`."""
        begin = self._ring.written
        rows = Batch.of(batch)
        if self._ratio is not None:
            self._ratio.collected(rows)
        self._intake.write(rows if self._stacks is None else self._stacks.numbered(rows))
        if self._ring.written > begin:
            self._wrote(begin)
            if self._stacks is not None:
                self._stacks.check_kept(self._oldest(rows.size[0]))

    def extend(self, batch: TensorDict | CollectedBatch) -> Tensor:
        """Copy the valid steps of a batch, and return their places, int64 `[row]`.

        Args:
            batch: of batch size `[env, time]`, or of any other with `n_steps = 1`. With `n_steps` above 1 each call
                must continue the envs of the last one.

        Raises:
            RlcoreError: its entries differ from those of the first batch, or it has not the two dimensions, the
                rewards and the ends of episodes that `n_steps` needs.
            StorageError: there is no room for the rows.
        """
        begin = self._ring.written
        self.add(batch)
        # a batch larger than the buffer has overwritten its own first rows
        first = max(begin, self._ring.written - self._config.capacity)
        return torch.arange(first, self._ring.written, device=self._device) % self._config.capacity

    def feedback(self, minibatch: Mapping[Key, Tensor], values: Mapping[str, Tensor]) -> None:
        """Do nothing, as transitions have no priorities."""

    def update_priority(self, index: Tensor | TensorDict, priority: Tensor | None = None) -> None:
        """Do nothing, as transitions have no priorities."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the generator and, with `save = "full"`, the transitions."""
        state = self._sampling_state()
        if self._saves:
            state["ring"] = self._ring.state_dict()
            if self._joined_steps > 1:
                state["n_step"] = self._intake.state_dict()
            if self._stacks is not None:
                state["stacks"] = self._stacks.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state; without transitions in it, begin with another warm-up.

        Raises:
            StorageError: the transitions are of a buffer of another size or of other envs, or there is no room for
                them.
        """
        self._check(state)
        self._load_sampling_state(state)
        has_rows = "ring" in state
        if has_rows:
            self._ring.load_state_dict(state["ring"])
        else:
            self._ring = Ring(self._config.capacity, self._ring.allocate)
            self._warm_up_again()
        self._intake = self._new_intake()
        if has_rows and "n_step" in state:
            self._intake.load_state_dict(state["n_step"])
        if self._stacks is not None:
            self._stacks.forget()
            if "stacks" in state:
                self._stacks.load_state_dict(state["stacks"])

    def forget_episodes(self) -> None:
        """Drop steps that wait for later ones, as the collector begins new episodes."""
        self._intake.forget()
        if self._stacks is not None:
            self._stacks.forget()

    def _oldest(self, num_envs: int) -> Tensor:
        """Return the numbers of the frames of the oldest transitions, so many that the oldest frame is among them."""
        layout, capacity = self._ring.layout, self._config.capacity
        assert layout is not None
        assert self._config.stack is not None
        count = min(len(self), 2 * num_envs * (self._config.stack + self._config.n_steps))
        first = max(0, self._ring.written - capacity)
        places = torch.arange(first, first + count, device=self._device) % capacity
        return layout.view(self._ring.rows(places), OBSERVATION)

    def _new_intake(self) -> Intake:
        kind = HostIntake if self._device.type == "cpu" else TensorIntake
        return kind(self._ring, self._joined_steps, self._config.gamma)

    def _wrote(self, begin: int) -> None:
        """Follow a write: transitions from number `begin` on are new."""

    def _check(self, state: Mapping[str, Any]) -> None:
        """Refuse transitions of other observations or of another `n_steps`.

        Raises:
            StorageError: the message says what differs.
        """
        entries = RowLayout.from_state(state.get("ring", {}).get("layout", [])).entries
        spec = self._context.built.get("env_spec")
        stacks = state.get("stacks")
        if entries:
            check_same_kind(stacks, self._stacks)
        if spec is not None and "observation" in entries:
            shape = entries["observation"][1] if stacks is None else (stacks["stack"], *stacks["shape"])
            saved = torch.empty(shape, device="meta")  # a shape without memory
            check_array("an observation", saved, spec.observation_space.shape, "[env], [[transform]]")
        if entries and (STEPS in entries) != (self._joined_steps > 1):
            there, here = ("several steps", "one") if STEPS in entries else ("one step", "several")
            raise StorageError(
                f"its transitions are of {there} in the checkpoint, and of {here} here ([buffer] n_steps)"
            )

    def _draw(self, size: int) -> Minibatch:
        index = torch.randint(len(self), (size,), generator=self._generator, device=self._device)
        return self._gathered(index)

    def _gathered(self, index: Tensor, **further: Tensor) -> Minibatch:
        """Return the transitions at places `[sample]` with further entries."""
        layout = self._ring.layout
        assert layout is not None
        if self._stacks is None and self._on_run_device:  # nothing is copied until an entry is read
            read = self._ring.reader(index)
            minibatch: Minibatch = RowMinibatch(self._ring.columns, index, (INDEX, *further), read)
        elif self._stacks is None:  # one copy of whole rows to the device of the run; entries are views of it
            read = layout.reader(self._ring.rows(index).to(self._context.device))
            minibatch = Minibatch(index.shape[0], (*layout.keys, INDEX, *further), read)
        else:
            entries = layout.views(self._ring.rows(index))
            self._stacks.fill(entries, self._config.n_steps == 1)
            minibatch = Minibatch.of({key: value.to(self._context.device) for key, value in entries.items()})
        minibatch[INDEX] = index
        for key, value in further.items():
            minibatch[key] = value.to(self._context.device)
        return minibatch
