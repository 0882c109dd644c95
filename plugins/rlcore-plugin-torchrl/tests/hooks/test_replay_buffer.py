"""ReplayBufferTrainer fills a replay buffer and draws from it."""

import pytest
import torch
from tensordict import MemoryMappedTensor, TensorDict

from rlcore import HookError, ReplayBufferTrainer


class Buffer:
    """Keeps every step in order of arrival, and draws the oldest ones."""

    def __init__(self):
        self.steps = []
        self.priorities = []

    def extend(self, batch):
        self.steps += list(batch.unbind(0))

    def sample(self, batch_size=3):
        return torch.stack(self.steps[:batch_size])

    def __iter__(self):
        return iter([self.sample(2), self.sample(1)])

    def numbers(self):
        return [step["number"].tolist() for step in self.steps]


class KeepingBuffer(Buffer):
    def state_dict(self):
        return {"steps": [step["number"] for step in self.steps]}

    def load_state_dict(self, state):
        self.steps = [TensorDict({"number": number}) for number in state["steps"]]


class ToldBuffer(Buffer):
    def update_tensordict_priority(self, batch):
        self.priorities.append(batch["number"].tolist())


class IndexedBuffer(Buffer):
    priority_key = "error"

    def update_priority(self, index, priority):
        self.priorities.append((index.tolist(), priority.tolist()))


class PrioritizedSampler:
    """Has the name of those that draw by priority."""


class UntoldBuffer(Buffer):
    sampler = PrioritizedSampler()


def test_flattened_batches_go_in_step_by_step_and_end_truncated(batch):
    buffer, whole = Buffer(), batch(2, 3)
    stored = ReplayBufferTrainer(buffer, flatten_tensordicts=True).extend(whole)
    assert buffer.numbers() == stored["number"].tolist() == [0, 1, 2, 3, 4, 5]
    assert stored["next", "truncated"].reshape(-1).tolist() == [False, False, True] * 2
    assert not whole["next", "truncated"].any(), "the collector's batch stays as it is"


def test_of_flattened_batches_with_a_mask_the_valid_steps_go_in(batch, masked):
    buffer = Buffer()
    whole = masked(batch(2, 3), [[1, 1, 0], [1, 0, 0]])
    stored = ReplayBufferTrainer(buffer, flatten_tensordicts=True).extend(whole)
    assert buffer.numbers() == [0, 1, 3]
    assert not stored["next", "truncated"].any()


def test_without_flattening_rows_go_in_padded_to_the_given_sizes(batch):
    buffer = Buffer()
    assert ReplayBufferTrainer(buffer).extend(batch(2, 3)).batch_size == (2, 3)
    assert ReplayBufferTrainer(buffer, max_dims=[-1, 4]).extend(batch(2, 3)).batch_size == (2, 4)
    assert buffer.numbers() == [[0, 1, 2], [3, 4, 5], [0, 1, 2, 0], [3, 4, 5, 0]]


@pytest.mark.parametrize("max_dims", [[-1, 2], [4]])
def test_a_batch_that_does_not_fit_is_refused(batch, max_dims):
    with pytest.raises(HookError, match=r"a batch of size \[2, 3\] does not fit into max_dims \["):
        ReplayBufferTrainer(Buffer(), max_dims=max_dims).extend(batch(2, 3))


def test_batches_can_be_memory_mapped(batch):
    stored = ReplayBufferTrainer(Buffer(), memmap=True).extend(batch(4))
    assert isinstance(stored["observation"], MemoryMappedTensor)
    assert stored["number"].tolist() == [0, 1, 2, 3]


def test_samples_have_the_given_size_or_that_of_the_buffer(batch):
    buffer = Buffer()
    ReplayBufferTrainer(buffer).extend(batch(5))
    assert ReplayBufferTrainer(buffer).sample().batch_size == (3,)
    assert ReplayBufferTrainer(buffer, batch_size=2).sample(batch(5)).batch_size == (2,)
    assert ReplayBufferTrainer(buffer, device="meta").sample()["number"].device.type == "meta"


def test_an_iterated_buffer_ends_the_epoch_and_starts_over(batch, make_trainer):
    sizes = []
    trainer = make_trainer([batch(4)], optim_steps_per_batch=None, num_epochs=2)
    ReplayBufferTrainer(Buffer(), iterate=True).register(trainer)
    trainer.register_op("post_optim_log", lambda sub_batch: sizes.append(sub_batch.numel()))
    trainer.train()
    assert sizes == [2, 1, 2, 1]
    assert trainer.progress.updates == 4


@pytest.mark.parametrize(
    ("buffer", "expected"),
    [(Buffer(), []), (ToldBuffer(), [[0, 1]]), (IndexedBuffer(), [([7, 8], [0.5, 0.25])])],
    ids=["none", "by batch", "by index"],
)
def test_priorities_go_where_the_buffer_takes_them(batch, buffer, expected):
    hook = ReplayBufferTrainer(buffer)
    hook.update_priority(batch(2, index=torch.tensor([7, 8]), error=torch.tensor([0.5, 0.25])))
    assert buffer.priorities == expected


def test_a_buffer_without_priorities_in_the_sub_batch_is_told_none(batch):
    buffer = IndexedBuffer()
    ReplayBufferTrainer(buffer).update_priority(batch(2))
    assert buffer.priorities == []


def test_in_a_run_the_loss_sees_what_was_drawn_and_the_buffer_its_priorities(batch, make_trainer):
    buffer = ToldBuffer()
    trainer = make_trainer([batch(4), batch(4)])
    ReplayBufferTrainer(buffer, batch_size=2).register(trainer)
    trainer.train()
    assert len(buffer.steps) == 8
    assert buffer.priorities == [[0, 1], [0, 1]]


def test_the_state_is_that_of_the_buffer(batch):
    buffer = KeepingBuffer()
    hook, resumed = ReplayBufferTrainer(buffer), ReplayBufferTrainer(KeepingBuffer())
    hook.extend(batch(4))
    resumed.load_state_dict(hook.state_dict())
    assert resumed.replay_buffer.numbers() == [0, 1, 2, 3]
    assert hook.inexact() is None


def test_a_buffer_without_state_is_no_exact_resume(batch, make_trainer, tmp_path):
    trainer = make_trainer([batch(4)], save_trainer_file=tmp_path / "run")
    hook = ReplayBufferTrainer(Buffer())
    hook.register(trainer)
    trainer.save_trainer(True)
    assert any("replay buffer (Buffer) has no state" in reason for reason in trainer.parts.provenance.inexact)
    hook.load_state_dict(hook.state_dict())


def test_what_is_no_buffer_is_refused():
    with pytest.raises(HookError, match="a list has no method sample"):
        ReplayBufferTrainer([])
    with pytest.raises(HookError, match="UntoldBuffer with a PrioritizedSampler cannot be told"):
        ReplayBufferTrainer(UntoldBuffer())
