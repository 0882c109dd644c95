"""A named trainer over a script's own parts, without TorchRL; beside TorchRL's they are in tests/parity."""

from __future__ import annotations

import inspect

import pytest
import torch
from rlcore_plugin_torchrl.algorithms import arguments
from tensordict import TensorDict

import rlcore.algorithms
from rlcore.algorithms import ReinforceTrainer
from rlcore.errors import ConfigError


class Batches:
    """Gives three batches, and counts how often weights are sent."""

    def __init__(self):
        self.sent = []

    def __iter__(self):
        for _ in range(3):
            done = torch.zeros(4, 1, dtype=torch.bool)
            following = {"reward": torch.ones(4, 1), "done": done}
            yield TensorDict({"observation": torch.ones(4, 2), "action": torch.ones(4, 1), "next": following}, [4])

    def update_policy_weights_(self, weights):
        self.sent.append(weights["weight"].detach().clone())


class Loss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.actor_network = torch.nn.Linear(2, 1)

    def forward(self, batch):
        return TensorDict({"loss_actor": self.actor_network(batch["observation"]).square().mean()}, [])


def trainer_of(loss, **further):
    optimizer = torch.optim.SGD(loss.parameters(), lr=0.1)
    fixed = {"total_frames": 12, "optim_steps_per_batch": 1, "progress_bar": False}
    return ReinforceTrainer(collector=Batches(), loss_module=loss, optimizer=optimizer, **fixed, **further)


def test_the_collector_is_sent_the_weights_of_each_batch():
    loss = Loss()
    before = loss.actor_network.weight.detach().clone()
    trainer = trainer_of(loss, add_gae=False)
    trainer.train()
    assert trainer.collected_frames == 12
    assert len(trainer.collector.sent) == 3
    assert torch.equal(trainer.collector.sent[-1], loss.actor_network.weight)
    assert not torch.equal(before, loss.actor_network.weight)


def test_two_answers_to_one_question_are_refused():
    with pytest.raises(ConfigError, match="gae must not be handed over with add_gae = False"):
        trainer_of(Loss(), add_gae=False, gae=object())


KEYWORDS = {
    "A2CTrainer": arguments.OnPolicyArguments,
    "CQLTrainer": arguments.ContinuousArguments,
    "DDPGTrainer": arguments.DDPGArguments,
    "DQNTrainer": arguments.DQNArguments,
    "IQLTrainer": arguments.ContinuousArguments,
    "OfflineToOnlineTrainer": arguments.OfflineToOnlineArguments,
    "PPOTrainer": arguments.OnPolicyArguments,
    "ReinforceTrainer": arguments.OnPolicyArguments,
    "SACTrainer": arguments.DDPGArguments,
    "TD3Trainer": arguments.TD3Arguments,
}


@pytest.mark.parametrize("name", KEYWORDS)
def test_editors_see_the_keywords_that_inspect_shows(name):
    kind = getattr(rlcore.algorithms, name)
    shown = set(inspect.signature(kind).parameters)
    assert shown | {"self"} == set(inspect.signature(kind.__init__).parameters)
    assert shown - {"collector", "total_frames", "assembly"} == set(KEYWORDS[name].__annotations__)


def test_a_subclass_shows_the_arguments_of_its_own_constructor():
    class Mine(rlcore.algorithms.PPOTrainer):
        def __init__(self, speed, **further):
            super().__init__(**further)

    class Plain(rlcore.algorithms.PPOTrainer):
        pass

    assert list(inspect.signature(Mine).parameters) == ["speed", "further"]
    assert inspect.signature(Plain) == inspect.signature(rlcore.algorithms.PPOTrainer)
