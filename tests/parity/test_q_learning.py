"""The losses of Q-learning on fixed minibatches: values, targets, priorities and gradients are those of TorchRL."""

from __future__ import annotations

import pytest
import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential

pytest.importorskip("torchrl")

from rlcore_plugin_dqn.layers import NoisyLinear, factorised
from rlcore_plugin_testing import make_trainer
from torchrl.modules import DistributionalQValueModule, QValueActor
from torchrl.modules import NoisyLinear as TheirNoisyLinear
from torchrl.objectives import DistributionalDQNLoss, DQNLoss

SAMPLES, GAMMA, ACTIONS = 64, 0.9, 3
MODEL = {"use": "dqn:q-network", "hidden": [16]}
AROUND = {
    "env": {"use": "testing:toy", "actions": "discrete"},
    "model": MODEL,
    "estimator": None,
    "buffer": {"use": "rollout", "minibatch_size": 8},
}
pytestmark = pytest.mark.filterwarnings("ignore")


def made_up(steps: int) -> TensorDict:
    generator = torch.Generator().manual_seed(5)
    terminated = torch.rand(SAMPLES, 1, generator=generator) < 0.3
    following = {
        "observation": torch.randn(SAMPLES, 3, generator=generator),
        "reward": 2 * torch.randn(SAMPLES, 1, generator=generator),
        "terminated": terminated,
        "done": terminated,
    }
    entries = {
        "observation": torch.randn(SAMPLES, 3, generator=generator),
        "action": torch.randint(ACTIONS, (SAMPLES,), generator=generator),
        "next": following,
    }
    if steps > 1:
        entries["steps_to_next_obs"] = torch.randint(1, steps + 1, (SAMPLES, 1), generator=generator)
    return TensorDict(entries, [SAMPLES])


def ours(loss: dict, **model):
    """Return a loss and its model, whose target is not the network."""
    trainer = make_trainer(sections={**AROUND, "model": {**MODEL, **model}, "loss": {"gamma": GAMMA, **loss}})
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter += torch.randn(parameter.shape, generator=generator)
    return trainer.learner._loss, trainer.model


def give_target(theirs, network, target):
    """Set their target parameters to the weights of ours, which lie in the same order."""
    names = [name for name, _ in network.named_parameters()]
    weights = dict(target.named_parameters())
    found = list(theirs.target_value_network_params.values(True, True))
    known = {weight.shape: weights[name] for name, weight in network.named_parameters()}
    assert len(known) == len(names), "each shape once, so that it says which weight it is"
    for tensor in found:
        if tensor.shape in known:
            tensor.data.copy_(known[tensor.shape])


def gradients(value, network):
    for parameter in network.parameters():
        parameter.grad = None
    value.backward()
    return [parameter.grad.clone() for parameter in network.parameters()]


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("error", ["l1", "l2", "smooth_l1"])
def test_dqn(error, double, steps):
    loss, model = ours({"use": "dqn", "error": error, "double": double})
    actor = QValueActor(model.q_values, in_keys=["observation"], action_space="categorical")
    theirs = DQNLoss(actor, loss_function=error, delay_value=True, double_dqn=double, action_space="categorical")
    theirs.make_value_estimator(gamma=GAMMA)
    give_target(theirs, model.q_values, model.target_q_values)
    minibatch = made_up(steps)
    found = loss({key: minibatch[key] for key in minibatch.keys(True, True)})
    expected = theirs(minibatch)["loss"] * (0.5 if error == "l2" else 1.0)
    torch.testing.assert_close(found["loss_q"], expected)
    torch.testing.assert_close(found["td_error"].square(), minibatch["td_error"], rtol=1e-4, atol=1e-5)
    grads = gradients(found["loss_q"], model.q_values)
    own = theirs(minibatch)["loss"] * (0.5 if error == "l2" else 1.0)
    theirs.zero_grad()
    own.backward()
    by_shape = {tensor.shape: tensor.grad for tensor in theirs.parameters() if tensor.grad is not None}
    for grad in grads:
        torch.testing.assert_close(by_shape[grad.shape], grad, rtol=1e-4, atol=1e-6)


class LogProbabilities(torch.nn.Module):
    """Our distributions, as TorchRL orders them: `[sample, atom, action]`."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, observation):
        return self.network.logits(observation).log_softmax(-1).transpose(-1, -2)


@pytest.mark.parametrize("steps", [1, 3])
def test_c51(steps):
    """Theirs is double always; its priority is the cross entropy, ours the divergence: less the target's entropy."""
    loss, model = ours({"use": "dqn:c51", "double": True}, atoms=11, v_min=-5.0, v_max=5.0)
    support = model.q_values.support
    values = TensorDictModule(LogProbabilities(model.q_values), in_keys=["observation"], out_keys=["action_value"])
    chooser = DistributionalQValueModule(action_space="categorical", support=support)
    actor = TensorDictSequential(values, chooser)
    actor.action_space = "categorical"
    actor.register_buffer("support", support.clone())
    theirs = DistributionalDQNLoss(actor, gamma=GAMMA, delay_value=True)
    give_target(theirs, model.q_values, model.target_q_values)
    minibatch = made_up(steps)
    entries = {key: minibatch[key] for key in minibatch.keys(True, True)}
    found = loss(entries)
    expected = theirs(minibatch.set("action", minibatch["action"].unsqueeze(-1)))["loss"]
    torch.testing.assert_close(found["loss_q"], expected)
    target = loss._target(entries)
    entropy = -torch.special.xlogy(target, target).sum(-1, keepdim=True)
    torch.testing.assert_close(found["td_error"] + entropy, minibatch["td_error"], rtol=1e-4, atol=1e-5)


def test_a_noisy_layer():
    mine, theirs = NoisyLinear(5, 4, 0.5), TheirNoisyLinear(5, 4, std_init=0.5, use_exploration_type=False)
    with torch.no_grad():
        mine.reset_sigma()
        torch.testing.assert_close(mine.weight_sigma, theirs.weight_sigma)
        mine.weight.copy_(theirs.weight_mu), mine.bias.copy_(theirs.bias_mu)
    noise = factorised((9,), torch.Generator().manual_seed(1))
    theirs.weight_epsilon.copy_(torch.outer(noise[5:], noise[:5]))
    theirs.bias_epsilon.copy_(noise[5:])
    theirs.train()
    seen = torch.randn(7, 5, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        mine.bias_sigma.copy_(theirs.bias_sigma)  # they divide by the root of the outputs, the paper of the inputs
    torch.testing.assert_close(mine(seen, noise), theirs(seen))
