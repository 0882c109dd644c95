"""Rows hold what a batch held when it came, whoever made its tensors and however they come again."""

import gc
import weakref

import pytest
import torch
from rlcore_plugin_replay import intake
from rlcore_plugin_replay.buffer import ReplayBuffer
from rlcore_plugin_replay.intake import HostIntake, TensorIntake
from rlcore_plugin_replay.packing import Batch
from rlcore_plugin_replay.ring import Ring
from tensordict import TensorDict

from rlcore.errors import RlcoreError
from rlcore.types import MASK, CollectedBatch

REWARD, DONE = ("next", "reward"), ("next", "done")


def views(time, envs):
    """Tensors `[env, time, ...]` over memory by time, as those of a collector are."""

    def view(*shape, dtype=torch.float32):
        return torch.zeros(time, envs, *shape, dtype=dtype).transpose(0, 1)

    return {
        "observation": view(3),
        "action": view(dtype=torch.int64),
        REWARD: view(1),
        DONE: view(1, dtype=torch.bool),
        ("next", "observation"): view(3),
    }


def fill(columns, generator, ends=0.1):
    """Write other numbers into the same tensors."""
    for column in columns.values():
        if column.dtype == torch.bool:
            column.copy_(torch.rand(column.shape, generator=generator) < ends)
        else:
            column.copy_(torch.randint(0, 1000, column.shape, generator=generator))


def as_tensordict(columns, mask=None):
    batch = TensorDict({}, next(iter(columns.values())).shape[:2])
    for key, column in columns.items():
        batch.set(key, column)
    if mask is not None:
        batch.set(MASK, mask)
    return batch


def state_of(buffer):
    state = buffer.state_dict()
    return [state["ring"]["rows"].clone(), state["ring"]["written"], state.get("n_step")]


def assert_equal_states(one, two):
    assert torch.equal(one[0], two[0])
    assert one[1] == two[1]
    if one[2] is not None:
        assert torch.equal(one[2]["mask"], two[2]["mask"])
        for key, waiting in one[2]["waiting"].items():
            assert torch.equal(waiting, two[2]["waiting"][key]), key


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize(("time", "envs"), [(1, 1), (10, 1), (1, 4), (5, 3)])
def test_tensors_that_come_again_with_other_numbers_are_those_of_new_ones(time, envs, n_steps):
    """Over ends of episodes, masked steps, and the end of the ring."""
    generator = torch.Generator().manual_seed(1)
    same, fresh, light = (ReplayBuffer.of(capacity=64, n_steps=n_steps) for _ in range(3))
    columns, mask = views(time, envs), torch.ones(time, envs, 1, dtype=torch.bool).transpose(0, 1)
    remembered = as_tensordict(columns, mask)
    for number in range(40):
        fill(columns, generator)
        mask.copy_(torch.rand(mask.shape, generator=generator) < (0.5 if number % 3 else 2))
        same.extend(remembered)
        light.extend(CollectedBatch(columns, mask))
        fresh.extend(as_tensordict({key: value.clone() for key, value in columns.items()}, mask.clone()))
    assert len(same) == 64 or time * envs == 1
    assert_equal_states(state_of(same), state_of(fresh))
    assert_equal_states(state_of(light), state_of(fresh))


@pytest.mark.parametrize("n_steps", [1, 2, 4])
@pytest.mark.parametrize("masked", [(), (3, 4, 8), range(9)], ids=["never", "now and then", "always"])
def test_rows_through_host_memory_are_those_of_tensors(n_steps, masked):
    """A ring on a device is written column by column; both ways give the same rows, to the bit."""
    generator = torch.Generator().manual_seed(2)
    rings = [Ring(50, lambda shape: torch.zeros(shape, dtype=torch.int64)) for _ in range(2)]
    intakes = HostIntake(rings[0], n_steps, 0.9), TensorIntake(rings[1], n_steps, 0.9)
    for number, time in enumerate((7, 1, 1, 1, 12, 3, 3, 2, 60)):
        columns = views(time, 2)
        fill(columns, generator)
        columns[REWARD] /= 7
        mask = torch.rand(2, time, 1, generator=generator) < 0.7 if number in masked else None
        for taker in intakes:
            taker.write(Batch(columns, mask, torch.Size([2, time])))
        one, two = (ring.state_dict() for ring in rings)
        assert one["written"] == two["written"]
        assert torch.equal(one["rows"], two["rows"])
        if n_steps > 1:
            waiting, same = (taker.state_dict() for taker in intakes)
            assert torch.equal(waiting["mask"], same["mask"])


def test_steps_that_wait_go_from_one_way_to_the_other():
    """A run that was saved on one device may go on on another one."""
    generator = torch.Generator().manual_seed(3)
    columns = views(6, 2)
    fill(columns, generator)
    batch = Batch(columns, None, torch.Size([2, 6]))
    for first, second in ((HostIntake, TensorIntake), (TensorIntake, HostIntake)):
        rings = [Ring(50, lambda shape: torch.zeros(shape, dtype=torch.int64)) for _ in range(2)]
        whole, cut = first(rings[0], 4, 0.9), first(rings[1], 4, 0.9)
        whole.write(batch)
        cut.write(batch)
        other = second(rings[1], 4, 0.9)
        other.load_state_dict(cut.state_dict())
        whole.write(batch)
        other.write(batch)
        assert torch.equal(rings[0].state_dict()["rows"], rings[1].state_dict()["rows"])


def test_entries_that_exchange_their_tensors_are_noticed():
    buffer = ReplayBuffer.of(capacity=10)
    one, two = torch.tensor([1.0]), torch.tensor([2.0])
    for _ in range(2):
        buffer.extend(TensorDict({"a": one, "b": two}, [1]))
    buffer.extend(TensorDict({"a": two, "b": one}, [1]))
    samples = buffer.sample(200)
    assert set(zip(samples["a"].tolist(), samples["b"].tolist(), strict=True)) == {(1.0, 2.0), (2.0, 1.0)}


def test_a_tensor_that_is_given_other_memory_is_noticed():
    buffer, column = ReplayBuffer.of(capacity=10), torch.tensor([1.0])
    for _ in range(2):
        buffer.extend(TensorDict({"a": column}, [1]))
    column.data = torch.tensor([7.0])
    buffer.extend(TensorDict({"a": column}, [1]))
    assert set(buffer.sample(100)["a"].tolist()) == {1.0, 7.0}


def test_a_hook_that_replaces_one_entry_changes_that_one():
    buffer, columns = ReplayBuffer.of(capacity=100), views(1, 1)
    for number in range(20):
        columns["action"].fill_(number)
        batch = as_tensordict(columns)
        batch.set(REWARD, torch.full((1, 1, 1), float(number)))
        buffer.add(batch)
    samples = buffer.sample(300)
    assert torch.equal(samples["action"], samples[REWARD].squeeze(-1).long())
    assert set(samples["action"].tolist()) == set(range(20))


def test_a_large_batch_is_packed_in_pieces_and_not_kept(monkeypatch):
    monkeypatch.setattr(intake, "_PIECE", 1000)
    generator = torch.Generator().manual_seed(4)
    for n_steps in (1, 3):
        whole, pieces = (ReplayBuffer.of(capacity=500, n_steps=n_steps) for _ in range(2))
        columns = views(150, 2)
        fill(columns, generator)
        mask = torch.rand(2, 150, 1, generator=generator) < 0.8
        pieces.extend(as_tensordict(columns, mask))
        monkeypatch.setattr(intake, "_PIECE", 1 << 30)
        whole.extend(as_tensordict(columns, mask))
        monkeypatch.setattr(intake, "_PIECE", 1000)
        assert_equal_states(state_of(whole), state_of(pieces))
    kept = weakref.ref(columns["observation"])
    del columns, whole
    gc.collect()
    assert kept() is None


def test_dtypes_that_numpy_lacks_are_kept_bit_for_bit():
    buffer, column = ReplayBuffer.of(capacity=10), torch.tensor([[1.5], [float("nan")], [-3.0]], dtype=torch.bfloat16)
    for _ in range(2):
        buffer.extend(TensorDict({"a": column, "row": torch.arange(3)}, [3]))
    samples = buffer.sample(100)
    assert samples["a"].dtype == torch.bfloat16
    assert torch.equal(samples["a"].view(torch.int16), column.view(torch.int16)[samples["row"]])


def test_rewards_that_cannot_be_added_up_are_refused():
    columns = views(4, 1)
    with pytest.raises(RlcoreError, match=r"joins \('next', 'reward'\), .* the batch has int64 \[1\] and bool \[1\]"):
        ReplayBuffer.of(capacity=10, n_steps=2).extend(as_tensordict(columns | {REWARD: columns[REWARD].long()}))
    with pytest.raises(RlcoreError, match="the batch has absent and absent"):
        ReplayBuffer.of(capacity=10, n_steps=2).extend(as_tensordict({"observation": torch.zeros(1, 4, 2)}))


def test_steps_of_another_number_of_envs_are_not_joined():
    buffer = ReplayBuffer.of(capacity=10, n_steps=2)
    buffer.extend(as_tensordict(views(4, 1)))
    with pytest.raises(RlcoreError, match="goes on with the steps of 1 envs, and the batch has those of 2"):
        buffer.extend(as_tensordict(views(4, 2)))
    buffer.forget_episodes()
    buffer.extend(as_tensordict(views(4, 2)))
    assert buffer.write_count == 3 + 6
