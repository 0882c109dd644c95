"""BatchSubSampler draws steps or windows."""

import pytest
import torch

from rlcore import BatchSubSampler, HookError, Minibatch


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def test_of_a_flat_batch_it_draws_steps_without_replacement(batch):
    drawn = BatchSubSampler(6)(batch(10))["number"].tolist()
    assert len(set(drawn)) == 6
    assert drawn != sorted(drawn)


def test_of_a_batch_smaller_than_asked_it_draws_all_of_it(batch):
    assert sorted(BatchSubSampler(20)(batch(5))["number"].tolist()) == [0, 1, 2, 3, 4]


def test_of_a_minibatch_it_gathers_only_what_is_read():
    gathered = []

    def gather(key):
        gathered.append(key)
        return torch.arange(8)

    drawn = BatchSubSampler(3)(Minibatch(8, ("number", "unread"), gather))
    assert drawn.batch_size == (3,)
    assert len(set(drawn["number"].tolist())) == 3
    assert gathered == ["number"]


def test_whole_trajectories_by_default(batch):
    drawn = BatchSubSampler(20)(batch(3, 10))
    assert drawn.batch_size == (2, 10)
    assert all(row[0] % 10 == 0 and row == list(range(row[0], row[0] + 10)) for row in drawn["number"].tolist())


@pytest.mark.parametrize("size", [(3, 10), (3, 1, 10)])
def test_windows_hold_consecutive_steps_of_one_trajectory(batch, size):
    drawn = BatchSubSampler(400, sub_traj_len=4)(batch(*size))
    assert drawn.batch_size == (100, 4)
    rows = drawn["number"].tolist()
    assert all(row == list(range(row[0], row[0] + 4)) and row[0] // 10 == row[3] // 10 for row in rows)
    assert {row[0] for row in rows} == {10 * env + start for env in range(3) for start in range(7)}, (
        "also the last ones"
    )


def test_every_window_is_equally_likely(batch):
    starts = BatchSubSampler(14_000, sub_traj_len=2)(batch(1, 8))["number"][:, 0]
    counts = torch.bincount(starts, minlength=7).double()
    assert ((counts - 1000).abs() < 5 * 1000**0.5).all(), counts


def test_windows_end_before_the_padding(batch, masked):
    whole = masked(batch(2, 6), [[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]])
    drawn = BatchSubSampler(300, sub_traj_len=5)(whole)
    assert drawn.batch_size == (100, 3), "as short as the shortest trajectory"
    assert drawn["collector", "mask"].all()
    assert {row[0] for row in drawn["number"].tolist()} == {0, 1, 2, 3, 6}


def test_trajectories_shorter_than_the_least_window_are_left_out(batch, masked):
    whole = masked(batch(2, 6), [[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]])
    drawn = BatchSubSampler(400, sub_traj_len=5, min_sub_traj_len=4)(whole)
    assert drawn.batch_size == (100, 4)
    assert {row[0] for row in drawn["number"].tolist()} == {0, 1, 2}


@pytest.mark.parametrize(
    ("sampler", "mask", "message"),
    [
        (BatchSubSampler(3), None, "batch_size = 3 steps are fewer than one window of 6"),
        (BatchSubSampler(12, 7), None, "windows of 7 steps, and the longest trajectory of the batch has 6"),
        (BatchSubSampler(12), [[1] * 6, [0] * 6], "no valid step; set min_sub_traj_len"),
        (BatchSubSampler(400, 2), [[1, 0, 1, 0, 0, 0]] * 2, "padding between valid steps"),
    ],
    ids=["empty", "too long", "no step", "hole"],
)
def test_what_cannot_be_drawn_is_refused(batch, masked, sampler, mask, message):
    whole = batch(2, 6) if mask is None else masked(batch(2, 6), mask)
    with pytest.raises(HookError, match=message):
        sampler(whole)


def test_a_batch_without_a_dimension_is_refused(batch):
    with pytest.raises(HookError, match="no dimension"):
        BatchSubSampler(1)(batch(2)[0])


def test_a_size_that_is_not_positive_is_refused():
    with pytest.raises(HookError, match="batch_size = 0"):
        BatchSubSampler(0)


@pytest.mark.parametrize("size", [(20,), (4, 5)])
def test_with_a_generator_of_its_own_it_goes_on_after_a_resume(batch, size):
    hook, resumed = (BatchSubSampler(8, 2, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    whole = batch(*size)
    hook(whole)
    resumed.load_state_dict(hook.state_dict())
    torch.rand(3)
    assert torch.equal(hook(whole)["number"], resumed(whole)["number"])


def test_without_one_the_global_generator_decides(batch):
    assert BatchSubSampler(3).state_dict() == {}
    first = BatchSubSampler(5)(batch(20))["number"]
    torch.manual_seed(0)
    second = BatchSubSampler(5)
    second.load_state_dict({})
    assert torch.equal(first, second(batch(20))["number"])


def test_each_step_of_a_run_samples_again(batch, make_trainer):
    drawn = []
    trainer = make_trainer([batch(100)], optim_steps_per_batch=3)
    BatchSubSampler(5).register(trainer)
    trainer.register_op("post_loss", lambda sub_batch: drawn.append(tuple(sub_batch["number"].tolist())))
    trainer.train()
    assert len(set(drawn)) == 3
