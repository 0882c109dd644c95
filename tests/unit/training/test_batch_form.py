"""Batches go through the loop as their tensors where nobody needs a TensorDict, else as TensorDicts."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_replay.buffer import ReplayBuffer
from rlcore_plugin_testing import make_trainer
from tensordict import TensorDict

from rlcore import Trainer, hookimpl
from rlcore.training.loop import Loop
from rlcore.types import CollectedBatch, Context, Progress, RunInfo
from rlcore.types.overrides import is_overridden

REPLAY = {
    "buffer": {"use": "replay", "capacity": 64, "minibatch_size": 8, "warmup_frames": 16},
    "estimator": [],
    "evaluator": [],
    "env": {"use": "gymnasium", "id": "CartPole-v1"},
    "model": {"use": "dqn:q-network", "hidden": [8]},
    "loss": {"use": "dqn"},
}


class Seen(ReplayBuffer):
    """Notes what it is given."""

    def __init__(self):
        context = Context(RunInfo("run", 1, 100), torch.device("cpu"), Progress(100), "buffer", "replay")
        super().__init__(self.Config(capacity=64, minibatch_size=8, warmup_frames=1000), context)
        self.kinds = []

    def add(self, batch):
        self.kinds.append(type(batch))
        super().add(batch)


class ThirdParty(Seen):
    """A buffer that never heard of anything but TensorDicts."""

    takes_columns = False


class WithoutBatch:
    @hookimpl
    def post_steps(self, trainer):
        self.trainer = trainer


class WithBatch:
    @hookimpl
    def pre_steps_log(self, batch):
        self.kind = type(batch)


class Light(WithBatch):
    takes_columns = True


class Asks:
    """Asks the trainer for the batch, and changes it."""

    @hookimpl
    def pre_steps_log(self, trainer):
        trainer.batch["next", "reward"] = torch.full_like(trainer.batch["next", "reward"], 7.0)


def kinds(buffer, hooks=(), change=lambda trainer: None):
    trainer = make_trainer(hooks=hooks, sections=REPLAY)
    trainer.parts.buffer = buffer
    change(trainer)
    trainer.train()
    return set(buffer.kinds)


def own_collect(trainer):
    collect = trainer.collector.collect
    trainer.collector.collect = lambda: collect().clone()


def with_transform(trainer):
    class Nothing:
        def step(self, observation, first):
            return observation

        def final(self, observation, index):
            return observation

        def batch(self, batch):
            return batch

    trainer.parts.transforms.append(Nothing())


@pytest.mark.parametrize("hook", [WithoutBatch, Light])
def test_tensors_where_nobody_needs_more(hook):
    instance = hook()
    assert kinds(Seen(), [instance]) == {CollectedBatch}
    if hook is Light:
        assert instance.kind is CollectedBatch


def test_tensordicts_for_a_hook_that_reads_the_batch():
    hook = WithBatch()
    assert kinds(Seen(), [hook]) == {TensorDict}
    assert hook.kind is TensorDict


@pytest.mark.parametrize("change", [own_collect, with_transform])
def test_tensordicts_where_a_part_needs_them(change):
    assert kinds(Seen(), change=change) == {TensorDict}


def test_tensordicts_for_a_buffer_that_does_not_say_otherwise():
    assert kinds(ThirdParty()) == {TensorDict}


def test_a_collector_that_overrides_collect_alone_has_that_called():
    def change(trainer):
        class Own(type(trainer.collector)):
            def collect(self):
                return super().collect()

        trainer.collector.__class__ = Own

    assert kinds(Seen(), change=change) == {TensorDict}


def test_optim_steps_of_a_script_get_tensordicts():
    kinds_of_batches = []

    class Own(Loop):
        def optim_steps(self, batch):
            kinds_of_batches.append(type(batch))

    buffer = Seen()
    buffer.warmup_frames = 0
    parts = make_trainer(sections=REPLAY).parts
    parts.buffer = buffer
    Own(parts).train()
    assert set(kinds_of_batches) == {TensorDict}


def test_the_epochs_of_a_script_are_told_from_those_of_rlcore():
    class Own(Trainer):
        def optim_steps(self, batch):
            super().optim_steps(batch)

    trainers = [object.__new__(kind) for kind in (Loop, Trainer, Own)]
    assert [is_overridden(trainer, "optim_steps") for trainer in trainers] == [False, False, True]


def test_what_a_hook_changes_in_the_batch_of_the_trainer_reaches_the_buffer():
    buffer = Seen()
    assert kinds(buffer, [Asks()]) == {TensorDict}
    assert buffer.sample(8)["next", "reward"].unique().tolist() == [7.0]


def test_the_batch_of_the_trainer_is_a_tensordict_and_stays_the_same():
    trainer = make_trainer(sections=REPLAY)
    for _ in trainer:
        batch = trainer.batch
        assert isinstance(batch, TensorDict)
        assert batch is trainer.batch


def test_both_forms_train_alike():
    def digest(hooks):
        trainer = make_trainer(hooks=hooks, sections=REPLAY)
        trainer.train()
        return trainer.model.state_dict(), trainer.buffer.state_dict()

    (weights, rows), (expected_weights, expected_rows) = digest([]), digest([WithBatch()])
    torch.testing.assert_close(weights, expected_weights, rtol=0, atol=0)
    assert torch.equal(rows["ring"]["rows"], expected_rows["ring"]["rows"])
    assert rows["ring"]["layout"] == expected_rows["ring"]["layout"]


@pytest.mark.parametrize("masked", [False, True])
def test_a_collected_batch_is_like_its_tensordict(masked):
    columns = {
        "observation": torch.rand(2, 3, 4),
        ("next", "reward"): torch.rand(2, 3, 1),
        "action": torch.rand(2, 3),
        ("next", "done"): torch.zeros(2, 3, 1, dtype=torch.bool),
    }
    batch = CollectedBatch(columns, torch.ones(2, 3, 1, dtype=torch.bool) if masked else None)
    found = batch.to_tensordict()
    keys = batch.keys()
    assert set(keys) == set(found.keys(include_nested=True, leaves_only=True))
    assert all(found[key].data_ptr() == batch[key].data_ptr() and key in batch for key in keys)
    assert (batch.batch_size, batch.batch_dims, batch.numel()) == (found.batch_size, found.batch_dims, found.numel())
    assert (batch.get(("collector", "mask")) is not None) is masked
    assert batch.get("absent") is None
    assert "absent" not in batch
    with pytest.raises(KeyError):
        batch["absent"]
    found["further"] = torch.zeros(2, 3)
    assert "further" not in list(batch.to_tensordict().keys())
