"""The on-policy buffer of a policy with a state: shuffled stretches of time, each with the state at its beginning."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.buffers import SequenceMinibatch
from rlcore.errors import ConfigError
from rlcore.types import MASK, POLICY_STATE, Collector, Context, Key, has_memory, with_defaults
from rlcore_plugin_rollout.rollout import RolloutBuffer, chunk, rows

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.buffers import Minibatch


class RolloutSequences(RolloutBuffer):
    """Epochs over one batch, cut into stretches of one length in a new random order each time.

    A stretch may cross ends of episodes: `first` says where the state begins again. Its entries are
    `[time, sequence, ...]`, and `policy_state` that before its first step, `[sequence, *state]`, as the collector
    stored it. Steps that only reset an env stay where they are, masked; a stretch of nothing else is left out.

    Attributes:
        takes_memory: True.
    """

    class Config(BaseModel, extra="forbid"):
        """How a batch is cut and used."""

        epochs: int = Field(1, ge=1, description="passes over each batch")
        minibatch_size: int = Field(256, ge=1, description="steps per optimisation step, in whole stretches")
        sequence_length: int = Field(32, ge=1, description="steps of a stretch; divides those of each env in a batch")

    takes_memory = True

    def __init__(self, config: Config, context: Context) -> None:
        if not has_memory(context.model):
            raise ConfigError(
                "[buffer] rollout-sequences hands out stretches of time, for a policy with a state; that of this model "
                'has none: use = "rollout"'
            )
        length, size = config.sequence_length, config.minibatch_size
        collector = context.built.get("collector")
        batch_steps = with_defaults(collector, Collector).batch_steps
        if batch_steps is not None:
            envs = with_defaults(collector, Collector).batch_envs or context.env_spec.num_envs
            steps = batch_steps // envs
            if steps % length:
                raise ConfigError(
                    f"[buffer] sequence_length = {length} does not divide the {steps} steps of each env in a batch "
                    f"([collector] frames_per_batch, [env] num_envs = {context.env_spec.num_envs})"
                )
        if size % length:
            raise ConfigError(
                f"[buffer] minibatch_size = {size} is no multiple of sequence_length = {length}: it counts steps"
            )
        super().__init__(RolloutBuffer.Config(epochs=config.epochs, minibatch_size=size, remainder="drop"), context)
        self._length = length

    def minibatches(self, batch: TensorDict) -> Iterator[Minibatch]:
        """Yield the minibatches of one epoch in a new random order."""
        length, per_minibatch = self._length, self._minibatch_size // self._length
        num_envs, steps = batch.batch_size
        mask = batch.get(MASK, None)
        valid = None if mask is None else rows(mask).view(-1, length, num_envs).any(1).reshape(-1)
        stretches = num_envs * steps // length
        order, count = self._order(stretches, valid, per_minibatch, stretches // per_minibatch)
        if not count:  # every step is masked
            return
        places = _places(order.view(count, -1), length, num_envs)
        keys = tuple(batch.keys(include_nested=True, leaves_only=True))
        chunks: dict[Key, tuple[Tensor, ...]] = {}

        def chunks_of(key: Key) -> tuple[Tensor, ...]:
            if key not in chunks:
                of_key = places[:, 0] if key == POLICY_STATE else places
                gathered = rows(batch.get(key)).index_select(0, of_key.reshape(-1))
                chunks[key] = gathered.view(*of_key.shape, *gathered.shape[1:]).unbind(0)
            return chunks[key]

        for index in range(count):
            yield SequenceMinibatch(places[0].numel(), keys, partial(chunk, chunks_of, index))


def _places(stretches: Tensor, length: int, num_envs: int) -> Tensor:
    """Return in which rows, `[time * env]`, the steps of stretches are.

    Args:
        stretches: their numbers, `[minibatch, sequence]`; those of one time follow each other.
        length: of each.
        num_envs: how many envs there are.

    Returns:
        `[minibatch, time, sequence]`.
    """
    begin = stretches // num_envs * (length * num_envs) + stretches % num_envs
    steps = torch.arange(length, device=stretches.device) * num_envs
    return begin.unsqueeze(1) + steps.view(1, -1, 1)
