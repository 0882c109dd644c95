"""Duelling streams and noisy layers: what a network of them computes, and how it explores."""

import math

import pytest
import torch
from rlcore_plugin_dqn.layers import NoisyLinear, StreamedMLP, factorised
from rlcore_plugin_dqn.policy import NoisyEpsilonGreedy
from rlcore_plugin_testing import make_run, make_trainer

from rlcore.errors import ConfigError
from rlcore.types.progress import Progress

from .sections import AROUND, C51, QR, changed

ACTIONS, OUTPUTS = 3, 4


def generator(seed=1):
    return torch.Generator().manual_seed(seed)


def network(duelling=True, sigma=0.5, outputs=OUTPUTS, sizes=(5, 8, 6), initialisation="torch"):
    return StreamedMLP(
        sizes,
        ACTIONS,
        outputs,
        activation="tanh",
        initialisation=initialisation,
        duelling=duelling,
        sigma=sigma,
        casts=False,
        generator=generator(),
    )


@pytest.mark.parametrize("sizes", [(5,), (5, 8), (5, 8, 6)])
def test_duelling_streams_are_the_state_and_what_is_better_than_the_mean(sizes):
    net, seen = network(sigma=None, sizes=sizes), torch.randn(7, 5, generator=generator())
    found = net(seen).view(7, ACTIONS, OUTPUTS)
    hidden = seen
    for layer in net.body:
        hidden = torch.tanh(layer(hidden))
    streams = []
    for layers in (net.value, net.advantage):
        state = hidden
        for index, layer in enumerate(layers):
            state = layer(torch.tanh(state) if index else state)
        streams.append(state)
    value, advantage = streams[0].unsqueeze(1), streams[1].view(7, ACTIONS, OUTPUTS)
    torch.testing.assert_close(found, value + advantage - advantage.mean(1, keepdim=True))
    torch.testing.assert_close(found.mean(1), value.squeeze(1))
    assert len(net.body) == max(0, len(sizes) - 2), "the last hidden layer is there once for each stream"
    torch.testing.assert_close(net.raw()(seen), net(seen).detach())


def test_a_noisy_layer_is_mean_and_deviation():
    layer = NoisyLinear(5, 3, 0.5)
    noise = factorised((8,), generator())
    entering, leaving = noise[:5], noise[5:]
    with torch.no_grad():
        layer.weight.normal_(generator=generator(2)), layer.bias.normal_(generator=generator(3))
        layer.weight_sigma.normal_(generator=generator(4)), layer.bias_sigma.normal_(generator=generator(5))
    weight = layer.weight + layer.weight_sigma * leaving[:, None] * entering[None, :]
    bias = layer.bias + layer.bias_sigma * leaving
    seen = torch.randn(4, 5, generator=generator(6))
    torch.testing.assert_close(layer(seen, noise), seen @ weight.T + bias)
    torch.testing.assert_close(layer(seen), seen @ layer.weight.T + layer.bias)


def test_its_noise_is_the_signed_root_of_a_normal_number():
    drawn = factorised((200_000,), generator())
    normal = drawn.square() * drawn.sign()
    assert normal.mean().item() == pytest.approx(0.0, abs=0.01)
    assert normal.std().item() == pytest.approx(1.0, abs=0.01)
    assert (normal < 1).double().mean().item() == pytest.approx(0.8413, abs=0.005), "as a normal distribution has it"


@pytest.mark.parametrize("initialisation", ["torch", "orthogonal"])
def test_deviations_begin_at_sigma_over_the_root_of_the_inputs(initialisation):
    net = network(sigma=0.4, initialisation=initialisation)
    for layer in (*net.body, *net.value, *net.advantage):
        expected = 0.4 / math.sqrt(layer.in_features)
        assert torch.allclose(layer.weight_sigma, torch.tensor(expected))
        assert torch.allclose(layer.bias_sigma, torch.tensor(expected))


@pytest.mark.parametrize("duelling", [False, True])
def test_a_row_has_the_values_of_its_own_noise(duelling):
    """However it is computed: one noise for all rows in an update, one for each in a step."""
    net, seen = network(duelling), torch.randn(4, 5, generator=generator())
    noise = factorised((4, net.noise_size), generator(2))
    together, raw = net(seen, noise), net.raw()(seen, noise)
    torch.testing.assert_close(together.detach(), raw)
    for row in range(4):
        torch.testing.assert_close(net(seen, noise[row])[row], together[row])
    assert not torch.allclose(together, net(seen))
    together.sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


def noisy_policy(epsilon=0.0):
    model = make_trainer(sections=changed(AROUND, noisy=True, epsilon_start=epsilon)).model
    return model.policy, model.q_values


def test_the_policy_draws_new_noise_in_each_step_and_env():
    policy, net = noisy_policy()
    assert isinstance(policy, NoisyEpsilonGreedy)
    drawn = policy.draw(20, 6, generator())
    assert drawn.shape == (20, 6, 1 + net.noise_size)
    assert len(drawn.view(120, -1).unique(dim=0)) == 120
    assert torch.equal(drawn, policy.draw(20, 6, generator()))
    seen = torch.zeros(6, 3)
    actions = torch.stack([policy.act(seen, row)[0] for row in policy.draw(200, 6, generator())])
    assert len(actions.unique()) > 1, "one observation, several actions"
    expected = [int(net(seen[0], row).argmax()) for row in drawn[0, :, 1:]]
    assert policy.act(seen, drawn[0])[0].tolist() == expected


def test_evaluations_take_the_means():
    policy, net = noisy_policy()
    seen = torch.randn(50, 3, generator=generator())
    assert torch.equal(policy.mode(seen), net(seen).argmax(-1))


def test_epsilon_is_zero_with_noise_unless_it_is_said():
    assert noisy_policy()[0].epsilon == 0
    policy, _ = noisy_policy(0.25)
    assert policy.epsilon == 0.25
    random = policy.draw(1000, 5, generator())[..., 0]
    assert (random < policy._num_actions).double().mean().item() == pytest.approx(0.25, abs=0.02)
    row = policy.draw(1, 6, generator())[0]
    row[:, 0] = 1
    assert policy.act(torch.zeros(6, 3), row)[0].tolist() == [1] * 6
    policy._progress = Progress(100, frames=100)
    policy.refresh()
    assert policy.epsilon == 0, "falls to 0"


def test_an_end_of_epsilon_without_its_start_is_refused_with_noise():
    with pytest.raises(ConfigError, match=r"model.*epsilon_end = 0\.01: with noisy = true.*epsilon_start"):
        make_run(sections=changed(AROUND, noisy=True, epsilon_end=0.01))


def test_a_schedule_moves_the_epsilon_beside_the_noise():
    schedule = {"use": "linear", "target": "model.epsilon"}
    trainer = make_trainer(
        sections={**changed(AROUND, noisy=True, epsilon_start=0.4), "scheduler": [schedule], "evaluator": None}
    )
    seen = [trainer.model.policy.epsilon for _ in trainer]
    assert seen == pytest.approx([0.4, 0.3, 0.2, 0.1])


@pytest.mark.parametrize("sections", [AROUND, C51, QR], ids=["dqn", "c51", "qr-dqn"])
def test_network_target_and_choice_have_noise_of_their_own(sections):
    """Section 3.1 of the paper; one noise for all samples of an update."""
    trainer = make_trainer(sections=changed(sections, noisy=True, duelling=True))
    loss, size = trainer.learner._loss, trainer.model.q_values.noise_size
    assert loss.sample_noise(64, generator())["noise"].shape == (2, size)
    double = {**sections, "loss": {**sections["loss"], "double": True}}
    loss = make_trainer(sections=changed(double, noisy=True)).learner._loss
    noise = loss.sample_noise(64, generator())["noise"]
    assert noise.shape[0] == 3
    assert len(noise.unique(dim=0)) == 3


def test_an_encoder_comes_before_noisy_layers(tmp_path, monkeypatch):
    (tmp_path / "my_nets.py").write_text(
        "from torch import nn\n\n\ndef make(space):\n    return nn.Linear(space.shape[0], 7)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    trainer = make_trainer(sections=changed(AROUND, noisy=True, duelling=True, encoder="my_nets:make"))
    trainer.train()
    policy = trainer.model.policy
    assert policy.draw(2, 3, generator()).shape[-1] == 1 + trainer.model.q_values.head.noise_size
