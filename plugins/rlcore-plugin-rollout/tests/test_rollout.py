from __future__ import annotations

from collections import Counter
from itertools import chain
from types import SimpleNamespace

import pytest
import torch
from rlcore_plugin_rollout.rollout import RolloutBuffer
from rlcore_plugin_testing.ranks import in_ranks
from tensordict import TensorDict

from rlcore import ConfigError, Context, Progress
from rlcore.types import Alone, RunInfo


def make(seed=1, batch_steps=64, group=None, **keys):
    context = Context(
        RunInfo("run", seed, 1000), torch.device("cpu"), Progress(1000), "buffer", "rollout", group=group or Alone()
    )
    context.parts["collector"] = SimpleNamespace(batch_steps=batch_steps)
    return RolloutBuffer(RolloutBuffer.Config(**keys), context)


def batch(envs, steps, mask=None):
    """Each step carries its own number, in the root and below."""
    number = torch.arange(envs * steps).reshape(envs, steps, 1)
    following = TensorDict({"number": 10 * number}, batch_size=[envs, steps])
    entries = {"number": number, "next": following}
    if mask is not None:
        entries["collector"] = TensorDict({"mask": mask.unsqueeze(-1)}, batch_size=[envs, steps])
    return TensorDict(entries, batch_size=[envs, steps])


def drawn(buffer, source):
    """Return the numbers of each minibatch of an epoch."""
    result = []
    for minibatch in buffer.minibatches(source):
        number = minibatch["number"]
        assert torch.equal(minibatch["next", "number"], 10 * number), "rows stay together"
        assert number.shape == (minibatch.size, 1)
        result.append(number.flatten().tolist())
    return result


@pytest.mark.parametrize(("envs", "steps", "size"), [(1, 32, 8), (4, 8, 8), (8, 1, 8), (1, 5, 1), (3, 7, 21)])
def test_each_step_is_drawn_once_per_epoch(envs, steps, size):
    buffer = make(minibatch_size=size)
    source = batch(envs, steps)
    for _ in range(3):
        minibatches = drawn(buffer, source)
        assert {len(minibatch) for minibatch in minibatches} == {size}
        assert sorted(number for minibatch in minibatches for number in minibatch) == list(range(envs * steps))


def test_epochs_are_in_different_orders():
    buffer, source = make(minibatch_size=8), batch(1, 32)
    assert len({str(drawn(buffer, source)) for _ in range(10)}) == 10


def test_a_remainder_is_dropped_or_filled_up():
    source = batch(1, 21)
    dropped = drawn(make(minibatch_size=8), source)
    assert [len(minibatch) for minibatch in dropped] == [8, 8]
    assert max(Counter(chain.from_iterable(dropped)).values()) == 1
    filled = drawn(make(minibatch_size=8, remainder="fill"), source)
    assert [len(minibatch) for minibatch in filled] == [8, 8, 8]
    counts = Counter(chain.from_iterable(filled))
    assert set(counts) == set(range(21)), "every step at least once"
    assert max(counts.values()) == 2


@pytest.mark.parametrize("remainder", ["drop", "fill"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_masked_steps_are_never_drawn(share, remainder):
    generator = torch.Generator().manual_seed(3)
    for _ in range(20):
        mask = torch.rand(4, 16, generator=generator) < share
        mask[0, 0] = True
        source = batch(4, 16, mask)
        valid = set(source["number"].squeeze(-1)[mask].tolist())
        seen = set(chain.from_iterable(drawn(make(minibatch_size=8, remainder=remainder), source)))
        assert seen <= valid
        whole = len(valid) // 8 * 8
        assert len(seen) >= (len(valid) if remainder == "fill" else whole)


def test_a_batch_of_masked_steps_alone_gives_no_minibatch():
    assert drawn(make(minibatch_size=2), batch(2, 1, torch.zeros(2, 1, dtype=torch.bool))) == []


def test_a_minibatch_larger_than_a_batch_is_refused_before_the_first_frame():
    with pytest.raises(ConfigError, match=r"minibatch_size = 64 is more than the 32 steps of a batch"):
        make(batch_steps=32, minibatch_size=64)
    assert make(batch_steps=32, minibatch_size=32).num_epochs == 1


def test_the_order_depends_on_the_seed_alone():
    source = batch(1, 32)
    torch.manual_seed(0)
    first = drawn(make(minibatch_size=8), source)
    torch.manual_seed(1)
    assert drawn(make(minibatch_size=8), source) == first
    assert drawn(make(seed=2, minibatch_size=8), source) != first


def test_the_shuffle_goes_on_where_it_was():
    source, first = batch(1, 32), make(minibatch_size=8)
    drawn(first, source)
    state = first.state_dict()
    expected = [drawn(first, source) for _ in range(3)]
    second = make(seed=9, minibatch_size=8)
    second.load_state_dict(state)
    assert [drawn(second, source) for _ in range(3)] == expected


def test_the_number_of_epochs_is_that_of_the_config():
    assert make(epochs=7).num_epochs == 7
    assert make().warmup_frames == 0


def counts(buffer, source):
    return [minibatch.size for minibatch in buffer.minibatches(source)]


@pytest.mark.parametrize("remainder", ["drop", "fill"])
def test_ranks_have_as_many_minibatches_as_the_one_with_the_most(remainder):
    masks = [torch.ones(2, 16, dtype=torch.bool) for _ in range(3)]
    masks[1][:, 5:] = False
    masks[2][:] = False

    def epoch(group):
        buffer = make(minibatch_size=8, remainder=remainder, group=group)
        source = batch(2, 16, masks[group.rank])
        minibatches = list(buffer.minibatches(source))
        numbers = [minibatch["number"].flatten().tolist() for minibatch in minibatches]
        assert group.shares == 1, "once per epoch"
        for minibatch, found in zip(minibatches, numbers, strict=True):
            assert torch.equal(minibatch["next", "number"].flatten(), 10 * torch.tensor(found, dtype=torch.int64))
            assert minibatch.batch_size == (len(found),)
        return numbers

    whole, half, nothing = in_ranks(3, epoch)
    assert sorted(chain.from_iterable(whole)) == list(range(32))
    assert [len(numbers) for numbers in half] == [8] * 4
    valid = [*range(5), *range(16, 21)]
    assert set(chain.from_iterable(half)) == set(valid), "only valid steps, and each of them"
    assert max(Counter(chain.from_iterable(half)).values()) == 4
    assert nothing == [[]] * 4


def test_ranks_without_any_valid_step_have_no_minibatch():
    mask = torch.zeros(2, 16, dtype=torch.bool)
    assert in_ranks(2, lambda group: counts(make(minibatch_size=8, group=group), batch(2, 16, mask))) == [[], []]


def test_the_order_of_one_process_asks_nobody():
    class Silent(Alone):
        def share(self, numbers):
            raise AssertionError

    assert counts(make(minibatch_size=8, group=Silent()), batch(1, 32)) == [8] * 4
