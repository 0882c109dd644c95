"""Files of CleanRL's scripts: the same actions and values, weights alone, and the rest is said."""

import itertools

import numpy as np
import pytest
import torch
from rlcore_plugin_import.importing import import_model
from torch import nn

import rlcore
from rlcore.errors import ConfigError, RlcoreError

CART, PENDULUM = "CartPole-v1", "Pendulum-v1"


def layers(*sizes, activation=nn.Tanh):
    """Return linear layers as CleanRL numbers them."""
    made = []
    for inputs, outputs in itertools.pairwise(sizes):
        made += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*made[:-1])


class Discrete(nn.Module):
    """The agent of `ppo.py`."""

    def __init__(self):
        super().__init__()
        self.critic, self.actor = layers(4, 64, 64, 1), layers(4, 64, 64, 2)


class Continuous(nn.Module):
    """The agent of `ppo_continuous_action.py`."""

    def __init__(self):
        super().__init__()
        self.critic, self.actor_mean = layers(3, 64, 64, 1), layers(3, 64, 64, 1)
        self.actor_logstd = nn.Parameter(torch.full((1, 1), -0.5))


class Values(nn.Module):
    """The network of `dqn.py` and of `c51.py`."""

    def __init__(self, outputs):
        super().__init__()
        self.network = layers(4, 120, 84, outputs, activation=nn.ReLU)


class Actor(nn.Module):
    """The actor of `td3_continuous_action.py` and `ddpg_continuous_action.py`, of an env with lopsided bounds."""

    def __init__(self, scale=2.0, bias=0.0):
        super().__init__()
        self.fc1, self.fc2, self.fc_mu = nn.Linear(3, 16), nn.Linear(16, 16), nn.Linear(16, 1)
        self.register_buffer("action_scale", torch.tensor([scale]))
        self.register_buffer("action_bias", torch.tensor([bias]))

    def forward(self, rows):
        hidden = torch.relu(self.fc2(torch.relu(self.fc1(rows))))
        return torch.tanh(self.fc_mu(hidden)) * self.action_scale + self.action_bias


class Critic(nn.Module):
    """A critic of the same scripts, which sees actions in the units of the env."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(4, 16), nn.Linear(16, 16), nn.Linear(16, 1)

    def forward(self, rows, action):
        hidden = torch.relu(self.fc1(torch.cat([rows, action], 1)))
        return self.fc3(torch.relu(self.fc2(hidden)))


@pytest.fixture
def take(workdir):
    """Return what a file of CleanRL's became."""

    def taken(content, env, **options):
        torch.manual_seed(0)
        torch.save(content, workdir / "a.cleanrl_model")
        return import_model(workdir / "a.cleanrl_model", env, **options)

    return taken


def rows_of(size):
    return np.random.default_rng(0).uniform(-1, 1, (1_000, size)).astype(np.float32)


def model_of(imported):
    return rlcore.build(rlcore.load_config(imported.folder / "config.toml"), resume=True).trainer.model


def test_ppo(take):
    agent, rows = Discrete(), rows_of(4)
    imported = take(agent.state_dict(), CART)
    expected = agent.actor(torch.from_numpy(rows)).argmax(-1).tolist()
    assert rlcore.load_agent(imported.folder).act(rows).tolist() == expected
    torch.testing.assert_close(model_of(imported).critic(torch.from_numpy(rows)), agent.critic(torch.from_numpy(rows)))
    assert any("weights alone" in note for note in imported.notes)


def test_ppo_of_continuous_actions_says_how_observations_were_normalised(take, workdir):
    agent, rows = Continuous(), rows_of(3)
    with pytest.raises(ConfigError, match="--normalize"):
        take(agent.state_dict(), PENDULUM)
    mean, variance = np.array([0.1, -0.2, 1.0]), np.array([0.5, 1.0, 8.0])
    np.savez(workdir / "rms.npz", mean=mean, var=variance, count=500.0)
    imported = take(agent.state_dict(), PENDULUM, normalize=str(workdir / "rms.npz"))
    seen = np.clip((rows - mean) / np.sqrt(variance + 1e-8), -10, 10).astype(np.float32)
    expected = np.clip(agent.actor_mean(torch.from_numpy(seen)).detach().numpy(), -2, 2)
    np.testing.assert_allclose(rlcore.load_agent(imported.folder).act(rows), expected, rtol=0, atol=1e-6)
    assert model_of(imported).actor.log_std.item() == -0.5
    raw = take(agent.state_dict(), PENDULUM, normalize="none", name="raw")
    expected = np.clip(agent.actor_mean(torch.from_numpy(rows)).detach().numpy(), -2, 2)
    np.testing.assert_allclose(rlcore.load_agent(raw.folder).act(rows), expected, rtol=0, atol=1e-6)


def test_dqn(take):
    network, rows = Values(2), rows_of(4)
    imported = take(network.state_dict(), CART)
    expected = network.network(torch.from_numpy(rows))
    assert rlcore.load_agent(imported.folder).act(rows).tolist() == expected.argmax(-1).tolist()
    torch.testing.assert_close(model_of(imported).target_q_values(torch.from_numpy(rows)), expected)


@pytest.mark.parametrize("says", ["buffer", "arguments"])
def test_c51(take, says):
    network, rows, atoms = Values(2 * 11), rows_of(4), torch.linspace(-100.0, 50.0, 11)
    state = network.state_dict() | ({"atoms": atoms} if says == "buffer" else {})
    arguments = {"n_atoms": 11, "v_min": -100.0, "v_max": 50.0} if says == "arguments" else {}
    imported = take({"model_weights": state, "args": arguments}, CART)
    values = network.network(torch.from_numpy(rows)).view(-1, 2, 11).softmax(-1) @ atoms
    torch.testing.assert_close(model_of(imported).q_values(torch.from_numpy(rows)), values)
    assert rlcore.load_agent(imported.folder).act(rows).tolist() == values.argmax(-1).tolist()


def test_c51_that_does_not_say_its_values(take):
    with pytest.raises(ConfigError, match="v_min, v_max"):
        take({"model_weights": Values(22).state_dict(), "args": {"n_atoms": 11}}, CART)


@pytest.mark.parametrize("critics", [1, 2])
def test_td3_and_ddpg(take, critics):
    actor, values, rows = Actor(), [Critic() for _ in range(critics)], rows_of(3)
    imported = take((actor.state_dict(), *(one.state_dict() for one in values)), PENDULUM)
    assert imported.translation.algorithm == ("TD3" if critics == 2 else "DDPG")
    there = torch.from_numpy(rows)
    np.testing.assert_allclose(
        rlcore.load_agent(imported.folder).act(rows), actor(there).detach().numpy(), rtol=0, atol=1e-6
    )
    action = torch.linspace(-2, 2, 1_000).unsqueeze(-1)
    for part in ("critics", "target_critics"):
        here = getattr(model_of(imported), part)(there, action)
        expected = torch.stack([one(there, action) for one in values])
        torch.testing.assert_close(here, expected, rtol=1e-4, atol=1e-6)


def test_critics_of_an_env_with_lopsided_bounds(take):
    """The bias of the actions is not 0: the first layer of a critic takes it."""
    import gymnasium

    class Lopsided(gymnasium.ActionWrapper):
        def __init__(self):
            super().__init__(gymnasium.make(PENDULUM).unwrapped)
            self.action_space = gymnasium.spaces.Box(-1.0, 3.0, (1,), np.float32)

        def action(self, action):
            return action - 1

    gymnasium.register("Lopsided-v0", entry_point=Lopsided)
    try:
        actor, critic, rows = Actor(2.0, 1.0), Critic(), torch.from_numpy(rows_of(3))
        imported = take((actor.state_dict(), critic.state_dict()), "Lopsided-v0")
        action = torch.linspace(-1, 3, 1_000).unsqueeze(-1)
        here = model_of(imported).critics(rows, action)
        torch.testing.assert_close(here[0], critic(rows, action), rtol=1e-4, atol=1e-6)
    finally:
        gymnasium.registry.pop("Lopsided-v0")


def test_goes_on(take):
    imported = take(Discrete().state_dict(), CART, further=1_024)
    run = rlcore.build(rlcore.load_config(imported.folder / "config.toml"), resume=True)
    assert run.trainer.train().frames == 1_024
    assert run.trainer.progress.updates > 0


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"my.weight": torch.zeros(2, 2)}, "no script that is known here"),
        ({"network.0.weight": torch.zeros(32, 4, 8, 8), "network.1.weight": torch.zeros(2, 8)}, "convolutions"),
        ([1, 2], "no state dict"),
        ({}, "no state dict"),
        ({"critic.0.weight": torch.zeros(1, 4)}, "model of PPO does not fit"),
        ((Actor().state_dict(), {"fc1.weight": torch.zeros(16, 4)}), "as ddpg of CleanRL has"),
    ],
)
def test_what_is_unknown_is_named(take, workdir, content, says):
    with pytest.raises(RlcoreError, match=says):
        take(content, CART)
    assert not (workdir / "runs").exists()


def test_a_module_is_not_unpickled(take, workdir):
    with pytest.raises(RlcoreError, match="something else than tensors"):
        take(Values(2), CART)
    assert not (workdir / "runs").exists()


def test_another_algorithm_is_refused(take):
    with pytest.raises(ConfigError, match="'rainbow' cannot be taken along"):
        take(Values(2).state_dict(), CART, algorithm="rainbow")
