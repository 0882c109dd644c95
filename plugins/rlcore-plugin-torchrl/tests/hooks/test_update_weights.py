"""UpdateWeights sends weights to a collector at intervals."""

import pytest
import torch

from rlcore import HookError, UpdateWeights


class Collector(list):
    """Takes weights as collectors of TorchRL do."""

    def __init__(self, batches=()):
        super().__init__(batches)
        self.sent = []

    def update_policy_weights_(self, weights=None, *, weights_dict=None):
        self.sent.append(weights if weights_dict is None else weights_dict)


class Own:
    """Takes weights as collectors of rlcore do."""

    def __init__(self):
        self.updated = 0

    def update_model(self):
        self.updated += 1


class Sender:
    def __init__(self):
        self.updated = 0

    def update_weights(self):
        self.updated += 1


def test_every_interval_th_batch_sends(batch, make_trainer):
    collector = Collector()
    trainer = make_trainer([batch(4)] * 5, optim_steps_per_batch=3)
    UpdateWeights(collector, 2).register(trainer)
    trainer.train()
    assert collector.sent == [None, None]
    assert trainer.state_dict()["update_weights"] == {"counter": 5, "last_update_count": 0}


def test_optimisation_steps_can_be_counted(batch, make_trainer):
    collector = Collector()
    trainer = make_trainer([batch(4)] * 2, optim_steps_per_batch=5)
    UpdateWeights(collector, 3, interval_unit="optim_steps").register(trainer)
    sent = []
    trainer.register_op("post_steps", lambda: sent.append(len(collector.sent)))
    trainer.train()
    assert sent == [1, 3]


def test_weights_can_be_handed_over():
    collector = Collector()
    UpdateWeights(collector, policy_weights_getter=lambda: {"w": 1})()
    assert collector.sent == [{"w": 1}]


def test_weights_can_be_found_on_the_trainer(make_trainer):
    trainer = make_trainer()
    collector = Collector()
    UpdateWeights(collector, weight_update_map={"policy": "loss_module.actor"}, trainer=trainer)()
    (sent,) = collector.sent
    assert torch.equal(sent["policy"]["weight"], trainer.loss_module.actor.weight)


def test_a_collector_of_rlcore_and_a_sender_are_told():
    own, sender = Own(), Sender()
    UpdateWeights(own)()
    UpdateWeights(sender=sender)()
    assert (own.updated, sender.updated) == (1, 1)


@pytest.mark.parametrize("unit", ["batches", "optim_steps"])
def test_the_counts_go_on_after_a_resume(make_trainer, unit):
    trainer = make_trainer()
    collector = Collector()
    hook, resumed = (UpdateWeights(collector, 3, trainer=trainer, interval_unit=unit) for _ in range(2))
    for update in (3, 4):
        trainer.progress.updates = update
        hook()
    collector.sent.clear()
    resumed.load_state_dict(hook.state_dict())
    for update in (5, 6):
        trainer.progress.updates = update
        resumed()
    assert len(collector.sent) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "hand a collector or a sender over"),
        ({"collector": []}, "a list has neither update_policy_weights_"),
        ({"sender": []}, r"a list has no update_weights\(\)"),
        ({"collector": Collector(), "update_weights_interval": 0}, "expected at least 1"),
        ({"collector": Collector(), "interval_unit": "epochs"}, "interval_unit = 'epochs'"),
        ({"sender": Sender(), "policy_weights_getter": dict}, "leave the getter and the map out"),
    ],
)
def test_what_cannot_be_used_is_refused(arguments, message):
    with pytest.raises(HookError, match=message):
        UpdateWeights(**arguments)


def test_what_must_know_the_trainer_says_so(make_trainer):
    with pytest.raises(HookError, match="optimisation steps are the trainer's"):
        UpdateWeights(Collector(), interval_unit="optim_steps")()
    with pytest.raises(HookError, match="weight_update_map begins at a trainer"):
        UpdateWeights(Collector(), weight_update_map={"policy": "loss_module"})()
    wrong = UpdateWeights(Collector(), weight_update_map={"policy": "loss_module.critic"}, trainer=make_trainer())
    with pytest.raises(HookError, match=r"'loss_module.critic': a Loss has no 'critic'"):
        wrong()
