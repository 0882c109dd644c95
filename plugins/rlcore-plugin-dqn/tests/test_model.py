"""The Q-network, and its epsilon-greedy policy."""

import numpy as np
import pytest
import torch
from rlcore_plugin_dqn.network import CategoricalQNetwork
from rlcore_plugin_dqn.policy import EpsilonConfig, EpsilonGreedy
from rlcore_plugin_dqn.shifted import Shifted
from rlcore_plugin_mlp.network import MLP
from rlcore_plugin_testing import make_run, make_trainer

from rlcore.errors import ConfigError
from rlcore.types.progress import Progress

from .sections import AROUND, CATEGORICAL

ACTIONS = 4


@pytest.mark.parametrize("actions", ["bounded", "unbounded"])
def test_the_network_needs_discrete_actions(actions):
    with pytest.raises(ConfigError, match="discrete action space"):
        make_run(sections={**AROUND, "env": {"use": "testing:toy", "actions": actions}})


def test_a_range_of_values_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="must be less than"):
        make_run(sections={**AROUND, "model": {"use": "dqn:q-network", "v_min": 1.0, "v_max": 1.0}})


def network(seed=1, outputs=ACTIONS):
    return MLP([3, 16, outputs], "relu", "torch", 1.0, torch.Generator().manual_seed(seed))


def policy(epsilon, net=None):
    config = EpsilonConfig(epsilon_start=epsilon, epsilon_end=epsilon)
    return EpsilonGreedy(net or network(), ACTIONS, config, Progress(100))


def generator():
    return torch.Generator().manual_seed(3)


@pytest.mark.parametrize(("frames", "expected"), [(0, 1.0), (100, 0.76), (250, 0.4), (1000, 0.1), (2000, 0.1)])
def test_epsilon_is_a_function_of_the_progress(frames, expected):
    config = EpsilonConfig(epsilon_start=1.0, epsilon_end=0.1, epsilon_fraction=0.375)
    assert config.at(Progress(1000, frames=frames)) == pytest.approx(expected)


def test_as_many_actions_are_random_as_epsilon_says():
    noise = policy(0.3).draw(1000, 50, generator())
    random = noise[noise < ACTIONS]
    assert noise.shape == (1000, 50)
    assert noise.dtype == torch.int64
    assert len(random) / noise.numel() == pytest.approx(0.3, abs=0.01)
    np.testing.assert_allclose(torch.bincount(random, minlength=ACTIONS) / len(random), 1 / ACTIONS, atol=0.015)


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_actions_are_the_drawn_ones_and_else_the_best(epsilon):
    net = network()
    chosen, seen = policy(epsilon, net), torch.randn(50, 3)
    noise = chosen.draw(1, 50, generator())[0]
    action, _ = chosen.act(seen, noise)
    best = net(seen).argmax(-1)
    assert torch.equal(chosen.mode(seen), best)
    assert torch.equal(action, best if epsilon == 0 else noise)
    assert (epsilon == 0) == torch.equal(action, best)


def test_the_policy_follows_the_weights():
    net = network()
    chosen, seen = policy(0.0, net), torch.randn(200, 3)
    before = chosen.mode(seen)
    net.load_state_dict(network(seed=2).state_dict(), assign=True)
    chosen.refresh()
    assert torch.equal(chosen.mode(seen), net(seen).argmax(-1))
    assert not torch.equal(chosen.mode(seen), before)


def test_a_network_of_distributions_acts_by_their_means():
    torch.manual_seed(1)
    support = torch.linspace(-2.0, 5.0, 7)
    net = CategoricalQNetwork(network(outputs=ACTIONS * 7), ACTIONS, support)
    seen = torch.randn(9, 3)
    logits = net.logits(seen)
    assert logits.shape == (9, ACTIONS, 7)
    probabilities = torch.softmax(net.network(seen).reshape(9, ACTIONS, 7), -1)
    expected = (probabilities * support).sum(-1)
    torch.testing.assert_close(net(seen), expected)
    torch.testing.assert_close(net.raw()(seen), expected)
    assert torch.equal(policy(0.0, net).mode(seen), expected.argmax(-1))


@pytest.mark.parametrize("sections", [AROUND, CATEGORICAL])
def test_the_target_begins_as_a_copy_that_is_not_trained(sections):
    model = make_trainer(sections=sections).model
    pairs = list(zip(model.q_values.state_dict().items(), model.target_q_values.state_dict().items(), strict=True))
    assert all(name == other and torch.equal(one, two) for (name, one), (other, two) in pairs)
    assert not any(parameter.requires_grad for parameter in model.target_q_values.parameters())
    assert not {id(p) for p in model.q_values.parameters()} & {id(p) for p in model.target_q_values.parameters()}


def test_the_loop_explores_less_and_less():
    model = {**AROUND["model"], "epsilon_start": 0.8, "epsilon_end": 0.2, "epsilon_fraction": 0.5}
    trainer = make_trainer(sections={**AROUND, "model": model, "evaluator": None})
    seen = {progress.frames: trainer.model.policy.epsilon for progress in trainer}
    assert seen == pytest.approx({16: 0.8, 32: 0.5, 48: 0.2, 64: 0.2}), "set before each batch of 16"


@pytest.mark.parametrize("first", [0, 5])
def test_random_actions_are_foretold_as_they_are_taken(first):
    acting = policy(0.7)
    acting = Shifted(acting, first) if first else acting
    noise = acting.draw(30, 2, generator())
    actions, known = acting.foretold(noise)
    assert 0 < sum(known) < 30
    for time in (time for time in range(30) if known[time]):
        assert torch.equal(acting.act(torch.zeros(2, 3), noise[time])[0], actions[time])


def test_one_env_acts_as_it_would_among_others():
    acting = policy(0.5)
    observation, noise = torch.randn(40, 3, generator=generator()), acting.draw(40, 1, generator())
    together, _ = acting.act(observation, noise.squeeze(1))
    alone = [acting.act(row.unsqueeze(0), own) for row, own in zip(observation, noise, strict=True)]
    assert torch.equal(torch.cat([action for action, _ in alone]), together)
    assert all(action is described for action, described in alone)
    assert 0 < int((noise >= ACTIONS).sum()) < 40
