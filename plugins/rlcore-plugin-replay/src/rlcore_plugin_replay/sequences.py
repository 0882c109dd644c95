"""The replay buffer `sequences`, for policies with memory."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from rlcore.buffers import Minibatch
from rlcore.errors import ConfigError, RlcoreError, StorageError
from rlcore.state import check_array
from rlcore.types import MASK, Collector, Context, Key, with_defaults
from rlcore_plugin_replay.base import INDEX, ReplayConfig, SamplingBuffer
from rlcore_plugin_replay.episodes import Episodes, check_room
from rlcore_plugin_replay.layout import RowLayout
from rlcore_plugin_replay.packing import Batch
from rlcore_plugin_replay.priorities import Priorities, new_priorities
from rlcore_plugin_replay.sequence_keys import ADDED
from rlcore_plugin_replay.stacks import OBSERVATION, StackConfig, Stacks, check_same_kind, stacks_of
from rlcore_plugin_replay.streams import Cut
from rlcore_plugin_replay.takes_sequences import take_sequences
from rlcore_plugin_replay.td_errors import WEIGHT, TDErrors

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import CollectedBatch


class SequenceReplayBuffer(SamplingBuffer):
    """Keeps the latest steps of each env in their order, and samples sequences of them (Kapturowski et al., 2019).

    As in R2D2 (Recurrent Experience Replay in Distributed Reinforcement Learning, ICLR 2019), a sequence lies within
    one episode. It begins with the state of the policy at its first step, and with `burn_in` steps that only update
    that state. Sequences are sampled with probability `p^alpha / sum p^alpha`, where `p` is `eta` times the largest
    latest `|TD error|` of the steps plus `1 - eta` times the mean; a new one has the highest priority so far.

    A minibatch has entries `[time, sequence, ...]` of `burn_in + sequence_length + n_steps` rows, but `policy_state`
    `[sequence, *state]`, that before the first row, and `index` `[sequence]`. The mask `[time, sequence, 1]` is True
    where a step is trained on. `("next", "reward")` is the discounted sum over up to `n_steps` steps,
    `steps_to_next_obs` says how many, and `bootstrap_row` in which row the observation after them is. Episodes that
    begin or end within a sequence are padded by their first or last row. `priority_weight` are the importance weights.

    Attributes:
        schedulable: `beta`, which schedules may move.
        takes_memory: True.
    """

    takes_memory: Final = True

    class Config(StackConfig, ReplayConfig):
        """Keys of `[buffer]`."""

        capacity: int = Field(100_000, ge=1, description="steps that are kept, over all envs")
        minibatch_size: int = Field(32, ge=1, description="sequences per update")
        sequence_length: int = Field(40, ge=1, description="steps of a sequence that are trained on")
        burn_in: int = Field(40, ge=0, description="steps before those, which only bring the state up to date")
        overlap: int = Field(0, ge=0, description="trained steps that a sequence shares with the one before it")
        n_steps: int = Field(5, ge=1, description="steps joined into a target")
        alpha: float = Field(0.9, ge=0, description="how much priorities count: 0 samples uniformly")
        beta: float = Field(0.6, ge=0, le=1, description="how much of the bias the weights take back: 1 all of it")
        eta: float = Field(0.9, ge=0, le=1, description="of a priority, the part of the largest error; rest: the mean")
        eps: float = Field(1e-8, gt=0, description="added to each priority, so that every sequence can be sampled")

        @model_validator(mode="after")
        def _overlaps(self) -> Self:
            if self.overlap >= self.sequence_length:
                raise ValueError(
                    f"overlap = {self.overlap} must be less than sequence_length = {self.sequence_length}: sequences "
                    "would never get further"
                )
            return self

        @property
        def trained_steps(self) -> int:
            """Number of steps that an update trains on."""
            return self.minibatch_size * self.sequence_length

        @property
        def cut(self) -> Cut:
            """Sizes by which episodes are cut into sequences."""
            return Cut(self.sequence_length, self.burn_in, self.overlap, self.n_steps)

    _config: Config

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context)
        self._infers = take_sequences(context.built.get("loss"), config.cut)
        self._errors = TDErrors("replay:sequences", "alpha = 0", context) if config.alpha else None
        self.schedulable = {"beta": config.beta}
        self.writes: tuple[Key, ...] = (INDEX, WEIGHT, *ADDED)
        self._check_room()
        self._new_stacks()  # only for its check of the observations, before the first frame
        self._episodes: Episodes | None = None
        self._priorities = self._new_priorities()

    def __len__(self) -> int:
        """Return the number of sequences that can be sampled."""
        return 0 if self._episodes is None else self._episodes.sequences

    def add(self, batch: TensorDict | CollectedBatch) -> None:
        """Copy the valid steps of a batch `[env, time]`, which continues the episodes of the last batch.

        Raises:
            RlcoreError: the batch has other entries or envs than the first one, no rewards or ends of episodes, or more
                steps than the buffer.
            StorageError: there is no room for the rows.
        """
        rows = Batch.of(batch)
        if self._ratio is not None:
            self._ratio.collected(rows)
        if self._episodes is None:
            self._episodes = self._new_episodes(rows.size[0] if rows.size else 0)
        self._follow(*self._episodes.add(rows))

    def feedback(self, minibatch: Mapping[Key, Tensor], values: Mapping[str, Tensor]) -> None:
        """Set the priorities of a minibatch from `td_error` `[time, sequence, 1]`; store states that the loss inferred.

        Raises:
            ConfigError: the loss returns no `td_error`.
        """
        if not minibatch[INDEX].numel():
            return
        if self._infers is not None and self._infers.inferred_states is not None and self._episodes is not None:
            self._episodes.renew_states(minibatch[INDEX], self._infers.inferred_states)
        if self._errors is None:
            return
        errors = self._errors.of(values)
        if errors is not None:
            self.update_priority(minibatch[INDEX], self._mixed(errors, minibatch[MASK]))

    def update_priority(self, index: Tensor, priority: Tensor) -> None:
        """Set the priorities of sequences.

        Args:
            index: their places, int64 `[sequence]`: the entry `index` of samples.
            priority: of each, `[sequence]`; one that is not finite counts as the highest so far.
        """
        self._priorities.set(index, priority.detach())

    def forget_episodes(self) -> None:
        """End the running episodes where they are, as the collector begins new ones."""
        if self._episodes is not None:
            self._follow(*self._episodes.end())

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the generator and, with `save = "full"`, the steps and priorities."""
        state = self._sampling_state()
        if self._saves:
            state["cut"] = self._geometry()
            state |= self._priorities.state_dict()
            if self._episodes is not None:
                state["episodes"] = self._episodes.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state; without steps in it, begin with another warm-up.

        Raises:
            StorageError: the steps are of a buffer of another size, of other sequences or of other envs, or there is no
                room for them.
        """
        self._check(state)
        self._load_sampling_state(state)
        self._episodes, self._priorities = None, self._new_priorities()
        if "cut" not in state:
            self._warm_up_again()
            return
        self._priorities.load_state_dict(state)
        if "episodes" in state:
            self._episodes = self._new_episodes(state["episodes"]["num_envs"])
            self._episodes.load_state_dict(state["episodes"])

    def _new_priorities(self) -> Priorities:
        return new_priorities(self._config.capacity, self._config.alpha, self._config.eps, self._device)

    def _new_episodes(self, num_envs: int) -> Episodes:
        if not num_envs:
            raise RlcoreError("a replay buffer of sequences takes batches [env, time]")
        config = self._config
        sizes = (num_envs, config.capacity, config.cut, config.gamma)
        return Episodes(*sizes, self._allocate, self._device, self._new_stacks())

    def _new_stacks(self) -> Stacks | None:
        return stacks_of(self._config, self._config.capacity, self._context, partial(self._allocate, "frames"))

    def _follow(self, overwritten: Tensor, complete: Tensor) -> None:
        if len(overwritten):
            self._priorities.clear(overwritten)
        if len(complete):
            self._priorities.begin_at(complete)

    def _mixed(self, errors: Tensor, mask: Tensor) -> Tensor:
        """Return `eta * max + (1 - eta) * mean` of the errors of each sequence, `[sequence]`."""
        size = torch.where(mask, errors.abs(), 0.0)
        eta = self._config.eta
        mixed = eta * size.amax(0) + (1 - eta) * size.sum(0) / mask.sum(0)
        return mixed.squeeze(-1)

    def _draw(self, size: int) -> Minibatch:
        assert self._episodes is not None
        index, weight = self._priorities.draw(size, self._generator, self.schedulable["beta"])
        device = self._context.device
        rows = self._config.cut.rows
        return self._episodes.gather(index, device, {INDEX: index, WEIGHT: weight.to(device).expand(rows, -1, -1)})

    def _geometry(self) -> list[int]:
        config = self._config
        return [config.capacity, config.sequence_length, config.burn_in, config.overlap, config.n_steps]

    def _check_room(self) -> None:
        """Refuse a capacity that is too small for the envs and batches of the run.

        Raises:
            ConfigError: the capacity is too small.
        """
        spec, collector = self._context.built.get("env_spec"), self._context.built.get("collector")
        batch_steps = with_defaults(collector, Collector).batch_steps
        if spec is not None and batch_steps is not None:
            steps = batch_steps // spec.num_envs
            check_room(self._config.capacity, spec.num_envs, steps, self._config.cut, ConfigError)

    def _check(self, state: Mapping[str, Any]) -> None:
        """Refuse a state of other sequences or observations.

        Raises:
            StorageError: the message says what differs.
        """
        if "cut" not in state:
            return
        there, here = list(state["cut"]), self._geometry()
        if there != here:
            keys = ("capacity", "sequence_length", "burn_in", "overlap", "n_steps")
            wrong = [
                f"{key} = {old} in the checkpoint, {new} here"
                for key, old, new in zip(keys, there, here, strict=True)
                if old != new
            ]
            raise StorageError(
                f"the replay buffer holds other sequences: [buffer] {'; '.join(wrong)}; set it as it was, or start the "
                "buffer over with --fresh buffer"
            )
        spec = self._context.built.get("env_spec")
        episodes = state.get("episodes", {})
        entries = RowLayout.from_state(episodes.get("ring", {}).get("layout", [])).entries
        stacks = episodes.get("stacks")
        if entries:
            check_same_kind(stacks, self._config.stack)
        if spec is not None and entries:
            shape = entries[OBSERVATION][1] if stacks is None else (stacks["stack"], *stacks["shape"])
            saved = torch.empty(shape, device="meta")
            check_array("an observation", saved, spec.observation_space.shape, "[env], [[transform]]")
