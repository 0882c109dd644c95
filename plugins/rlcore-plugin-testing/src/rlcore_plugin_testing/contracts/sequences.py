"""What an on-policy buffer of sequences must keep besides: stretches of time, each with the state at its beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rlcore.types import FIRST, MASK, POLICY_STATE, Key
from rlcore.types.context import Context
from rlcore_plugin_testing.contracts.buffer import RolloutBufferContract

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor


class RolloutSequencesContract(RolloutBufferContract):
    """Base of the tests of an on-policy buffer of sequences; `around` has a model whose policy has a state."""

    def batch(self, context: Context, masked: tuple[int, ...] = ()) -> TensorDict:
        """Return a batch without states: the tests here bring them, and others compare entries step by step."""
        return super().batch(context, masked).exclude(POLICY_STATE)

    def trained(self, minibatch: Any, key: Key) -> Tensor:
        """Return an entry of the steps that are trained on, `[step, ...]`."""
        return super().trained(minibatch, key) if MASK in minibatch else minibatch[key].flatten(0, 1)

    def remembered(self, context: Context) -> TensorDict:
        """Return a batch whose states number its steps too, with beginnings of episodes here and there."""
        batch = self.batch(context)
        numbers = batch["next", "reward"]
        batch[POLICY_STATE] = torch.cat([numbers, -numbers], -1)
        batch[FIRST] = numbers.long() % 5 == 0
        return batch

    def test_a_sequence_is_a_stretch_of_time(self) -> None:
        """The gradient goes back over what really came before."""
        context = self.bench()
        buffer, batch = self.make(context), self.remembered(context)
        buffer.add(batch)
        for found in buffer.minibatches(batch):
            numbers = found["next", "reward"].squeeze(-1)
            assert numbers.ndim == 2, f"a minibatch has rewards {list(numbers.shape)}, not [time, sequence, 1]"
            ahead = torch.arange(len(numbers)).unsqueeze(1)
            assert torch.equal(numbers, numbers[:1] + ahead), "the steps of a sequence do not follow each other"
            inside = numbers[0] // self.steps == numbers[-1] // self.steps
            assert inside.all(), "a sequence goes from one env to another"
            assert torch.equal(found[FIRST].squeeze(-1), numbers.long() % 5 == 0), "`first` is of other steps"

    def test_a_sequence_begins_with_its_state(self) -> None:
        """From another one, the unroll would compute other values than the policy had."""
        context = self.bench()
        buffer, batch = self.make(context), self.remembered(context)
        buffer.add(batch)
        for found in buffer.minibatches(batch):
            begin = found["next", "reward"][0]
            expected = torch.cat([begin, -begin], -1)
            state = found[POLICY_STATE]
            assert state.shape == expected.shape, f"policy_state is {list(state.shape)}, not [sequence, *state]"
            assert torch.equal(state, expected), "policy_state is not that before the first step of the sequence"
