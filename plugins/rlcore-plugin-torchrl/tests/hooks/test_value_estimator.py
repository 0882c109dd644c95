"""ValueEstimatorHook calls an estimator before each epoch."""

import pytest
import torch

from rlcore import HookError, ValueEstimatorHook


class Estimator(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = torch.nn.Parameter(torch.zeros(()), requires_grad=False)

    def forward(self, batch):
        self.calls += 1
        return batch.set("advantage", batch["next", "reward"] * self.calls)


def test_every_epoch_sees_new_estimates_of_the_whole_batch(batch, make_trainer):
    estimator, seen = Estimator(), []
    whole = batch(2, 3)
    trainer = make_trainer([whole], num_epochs=2)
    ValueEstimatorHook(estimator).register(trainer)
    trainer.register_op("post_loss", lambda sub_batch: seen.append(sub_batch["advantage"].clone()))
    trainer.train()
    assert [torch.equal(advantage, whole["next", "reward"] * n) for n, advantage in enumerate(seen, 1)] == [True, True]


def test_without_a_batch_nothing_is_estimated():
    estimator = Estimator()
    assert ValueEstimatorHook(estimator)(None) is None
    assert estimator.calls == 0


def test_the_state_is_that_of_the_estimator(batch):
    hook, resumed = ValueEstimatorHook(Estimator()), ValueEstimatorHook(Estimator())
    hook(batch(4))
    resumed.load_state_dict(hook.state_dict())
    assert resumed.value_estimator.calls == 1


def test_a_function_without_state_is_an_estimator_too(batch):
    hook = ValueEstimatorHook(lambda batch: batch.set("advantage", batch["action"]))
    assert "advantage" in hook(batch(4))
    assert hook.state_dict() == {}
    hook.load_state_dict({})


def test_what_cannot_be_called_is_refused():
    with pytest.raises(HookError, match="a float cannot be called"):
        ValueEstimatorHook(0.5)


def test_an_estimator_that_returns_something_else_is_named(batch, make_trainer):
    trainer = make_trainer([batch(4)])
    ValueEstimatorHook(lambda batch: 3.0).register(trainer)
    with pytest.raises(HookError, match=r"hook 'value_estimator' .* at point 'pre_epoch' returned float; expected a"):
        trainer.train()
