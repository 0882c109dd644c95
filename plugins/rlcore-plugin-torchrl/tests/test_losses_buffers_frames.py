"""The builders for scripts: what each setting does, what is the default, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_torchrl.helpers.settings import setting
from tensordict import TensorDict

import rlcore.helpers
from rlcore.errors import ConfigError, EnvError, PluginError
from rlcore.helpers import (
    correct_for_frame_skip,
    get_stats_random_rollout,
    make_dqn_loss,
    make_replay_buffer,
    make_target_updater,
)
from rlcore.plugins.catalogue import PUBLISHED, Published
from rlcore.plugins.known import published
from rlcore.types.records import EnvSpec, Step


def settings(**values):
    return SimpleNamespace(**values)


def transitions(count, seed=1):
    generator = torch.Generator().manual_seed(seed)
    following = {
        "observation": torch.randn(count, 3, generator=generator),
        "reward": torch.randn(count, 1, generator=generator),
        "terminated": torch.rand(count, 1, generator=generator) < 0.3,
    }
    entries = {
        "observation": torch.randn(count, 3, generator=generator),
        "action": torch.randint(2, (count,), generator=generator),
        "next": TensorDict(following, [count]),
    }
    return TensorDict(entries, [count])


def network():
    torch.manual_seed(2)
    return torch.nn.Linear(3, 2)


def test_importing_the_builders_imports_no_torch():
    code = "import rlcore.helpers, sys; assert 'torch' not in sys.modules; print(*dir(rlcore.helpers))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == rlcore.helpers.__all__


def test_a_name_that_is_no_builder_is_an_attribute_error():
    with pytest.raises(AttributeError, match="make_trianer"):
        rlcore.helpers.make_trianer  # noqa: B018


def test_a_plugin_that_is_missing_is_named_with_its_command(monkeypatch):
    monkeypatch.setitem(PUBLISHED, "nowhere", Published({"loss": ("lost",)}))
    with pytest.raises(PluginError, match=r"loss 'lost' is provided by .*: pip install rlcore-plugin-nowhere"):
        published("loss", "lost")


def test_a_missing_setting_is_named_with_the_nearest_one():
    with pytest.raises(ConfigError, match=r"no 'init_env_steps'.*init_env_step"):
        setting(settings(init_env_step=3), "init_env_steps")


def test_counts_of_frames_become_counts_of_steps():
    given = settings(frame_skip=4, total_frames=1001, frames_per_batch=64, noops=3, init_env_steps=None, lr=0.1)
    given.max_frames_per_traj = -1
    assert correct_for_frame_skip(given) is given
    assert vars(given) == {
        "frame_skip": 4,
        "total_frames": 250,
        "frames_per_batch": 16,
        "noops": 1,
        "init_env_steps": None,
        "lr": 0.1,
        "max_frames_per_traj": -1,
    }


def test_without_frame_skip_nothing_changes():
    assert vars(correct_for_frame_skip(settings(total_frames=7))) == {"total_frames": 7}


@pytest.mark.parametrize("skip", [0, -2, 2.0])
def test_a_frame_skip_that_is_none_is_refused(skip):
    with pytest.raises(ConfigError, match="frame_skip"):
        correct_for_frame_skip(settings(frame_skip=skip))


def test_the_buffer_lies_in_a_mapped_file_and_draws_batches(tmp_path):
    buffer = make_replay_buffer("cpu", settings(buffer_size=100, buffer_scratch_dir=tmp_path, batch_size=17))
    buffer.extend(transitions(130))
    assert (len(buffer), buffer.write_count) == (100, 130)
    assert buffer.sample().batch_size == (17,)
    assert (tmp_path / "replay").is_dir()
    assert "priority_weight" not in buffer.sample().keys()  # noqa: SIM118 - a TensorDict is no mapping


def test_the_prioritized_buffer_has_the_exponents_of_the_builder(tmp_path):
    buffer = make_replay_buffer(
        "cpu", settings(buffer_size=100, buffer_scratch_dir=tmp_path, prb=True, batch_size=5000)
    )
    buffer.extend(transitions(2))
    buffer.update_priority(torch.tensor([0, 1]), torch.tensor([1.0, 4.0]))
    samples = buffer.sample()
    assert float((samples["index"] == 1).float().mean()) == pytest.approx(4**0.7 / (1 + 4**0.7), abs=0.01)
    assert float(samples["priority_weight"].min()) == pytest.approx((4**0.7) ** -0.5)


def test_the_buffer_has_defaults():
    buffer = make_replay_buffer("cpu", settings())
    buffer.extend(transitions(3))
    assert buffer.sample().batch_size == (256,)


@pytest.mark.parametrize("error", ["smooth_l1", "l1", "l2"])
def test_the_loss_is_that_of_the_settings(error):
    net, batch = network(), transitions(20)
    loss, updater = make_dqn_loss(net, settings(loss_function=error, gamma=0.5))
    values = net(batch["observation"]).gather(1, batch["action"].unsqueeze(1))
    best = net(batch["next", "observation"]).max(1, keepdim=True).values.detach()
    target = batch["next", "reward"] + 0.5 * best * ~batch["next", "terminated"]
    names = {"smooth_l1": "smooth_l1_loss", "l1": "l1_loss", "l2": "mse_loss"}
    expected = getattr(torch.nn.functional, names[error])(values, target) * (0.5 if error == "l2" else 1.0)
    torch.testing.assert_close(loss(batch)["loss_q"], expected)
    assert updater is not None


def test_double_has_a_target_of_its_own_that_the_updater_moves():
    net = network()
    loss, updater = make_dqn_loss(net, settings(loss="double", value_network_update_interval=10))
    assert loss.target_updater is None, "whoever trains moves the target, once"
    before = loss.target_q_values.weight.clone()
    with torch.no_grad():
        net.weight += 1.0
    updater.step()
    torch.testing.assert_close(loss.target_q_values.weight, before + 0.1)
    assert net.weight.requires_grad


def test_a_hard_update_copies_after_so_many_steps():
    net = network()
    loss, updater = make_dqn_loss(net, settings(hard_update=True, value_network_update_interval=3))
    with torch.no_grad():
        net.weight += 1.0
    moved = []
    for _ in range(3):
        updater.step()
        moved.append(torch.equal(loss.target_q_values.weight, net.weight))
    assert moved == [False, False, True]


def test_the_intervals_have_a_default():
    loss, soft = make_dqn_loss(network(), settings())
    hard = make_target_updater(settings(hard_update=True), loss)
    assert (soft.interval, soft.tau) == (1, pytest.approx(0.001))
    assert (hard.interval, hard.tau) == (1000, 1.0)


def test_single_is_its_own_target():
    net = network()
    loss, updater = make_dqn_loss(net, settings(loss="single"))
    assert updater is None
    assert loss.target_q_values is net
    loss(transitions(5))["loss_q"].backward()
    assert net.weight.grad is not None


def test_a_hard_update_without_a_target_is_refused():
    with pytest.raises(ConfigError, match="needs a target network"):
        make_dqn_loss(network(), settings(loss="single", hard_update=True))


def test_another_kind_of_loss_is_refused():
    with pytest.raises(ConfigError, match="'triple'"):
        make_dqn_loss(network(), settings(loss="triple"))


def test_distributional_is_c51():
    from rlcore_plugin_dqn.network import CategoricalQNetwork
    from rlcore_plugin_mlp.network import MLP

    body = MLP([3, 22], "relu", "torch", 1.0, torch.Generator().manual_seed(1))
    net = CategoricalQNetwork(body, 2, torch.linspace(-2.0, 2.0, 11))
    loss, updater = make_dqn_loss(net, settings(distributional=True))
    assert type(loss).__name__ == "C51Loss"
    loss(transitions(5))["loss_q"].backward()
    assert body.layers[0].weight.grad.abs().sum() > 0
    assert updater.tau == pytest.approx(0.001)


def test_a_buffer_a_loss_and_an_updater_make_a_training_loop(tmp_path):
    """Regress the value of a bandit with one state, whose two actions give 0 and 1."""
    net = network()
    buffer = make_replay_buffer("cpu", settings(buffer_size=64, batch_size=64, prb=True, buffer_scratch_dir=tmp_path))
    batch = transitions(64)
    batch["observation"] = torch.ones(64, 3)
    batch["next", "reward"] = batch["action"].float().unsqueeze(-1)
    batch["next", "terminated"] = torch.ones(64, 1, dtype=torch.bool)
    buffer.extend(batch)
    loss, updater = make_dqn_loss(net, settings())
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    for _ in range(200):
        samples = buffer.sample()
        found = loss(samples)
        optimizer.zero_grad()
        found["loss_q"].backward()
        optimizer.step()
        updater.step()
        samples["td_error"] = found["td_error"]
        buffer.update_priority(samples)
    torch.testing.assert_close(net(torch.ones(3)), torch.tensor([0.0, 1.0]), atol=0.02, rtol=0)


class FixedEnv:
    """Two envs that observe given values, one after the other."""

    def __init__(self, values, space=None):
        self._values, self._at, self.closed = values, 0, False
        space = space or gymnasium.spaces.Box(-np.inf, np.inf, values.shape[2:], np.float32)
        self.spec = EnvSpec("fixed", space, gymnasium.spaces.Discrete(2), num_envs=values.shape[1])

    def reset(self, seed=None):
        return self._values[0]

    def step(self, action):
        assert action.shape == (2,)
        self._at += 1
        nothing = np.zeros(2, dtype=bool)
        return Step(self._values[self._at], np.zeros(2), nothing, nothing, {}, {})

    def close(self):
        self.closed = True


def test_statistics_are_those_of_the_observations_of_random_actions():
    values = np.random.default_rng(1).normal(3.0, 2.0, (11, 2, 3)).astype(np.float32)
    values[..., 1] = 7.0
    env = FixedEnv(values)
    stats = get_stats_random_rollout(settings(init_env_steps=20), env)
    seen = values[:10].reshape(20, 3)
    expected = seen.std(0, ddof=1)
    expected[1] = 1.0
    middle = seen.mean(0)
    middle[1] = 0.0
    np.testing.assert_allclose(stats["loc"], middle, rtol=1e-5)
    np.testing.assert_allclose(stats["scale"], expected, rtol=1e-5)
    assert not env.closed, "it was handed in"


@pytest.mark.parametrize("key", [None, "pixels"])
def test_pixels_share_one_location_and_scale(key):
    values = np.random.default_rng(1).integers(0, 255, (11, 2, 4, 4)).astype(np.uint8)
    env = FixedEnv(values, gymnasium.spaces.Box(0, 255, (4, 4), np.uint8))
    stats = get_stats_random_rollout(settings(init_env_steps=19), env, key)
    seen = values[:10].reshape(20, 16)[:19].astype(np.float64)
    assert stats["loc"].shape == stats["scale"].shape == ()
    assert float(stats["loc"]) == pytest.approx(seen.mean())
    assert float(stats["scale"]) == pytest.approx(seen.std(ddof=1))
    by_feature = get_stats_random_rollout(
        settings(init_env_steps=19), FixedEnv(values, env.spec.observation_space), "observation"
    )
    assert by_feature["loc"].shape == (4, 4)


def test_statistics_of_an_env_that_is_made_for_them():
    first, again = (get_stats_random_rollout(settings(init_env_steps=200, env_name="CartPole-v1")) for _ in range(2))
    other = get_stats_random_rollout(settings(init_env_steps=200, env_name="CartPole-v1", seed=5))
    assert first["loc"].shape == (4,)
    assert (first["scale"] > 0).all()
    assert torch.equal(first["loc"], again["loc"]), "they follow from the seed"
    assert not torch.equal(first["loc"], other["loc"])


@pytest.mark.parametrize(
    ("given", "key", "match"),
    [
        ({}, None, "no 'init_env_steps'"),
        ({"init_env_steps": 1}, None, "at least 2"),
        ({"init_env_steps": 9}, "state", "'state'"),
    ],
)
def test_statistics_refuse_what_they_cannot_take(given, key, match):
    with pytest.raises(ConfigError, match=match):
        get_stats_random_rollout(settings(**given), FixedEnv(np.zeros((3, 2, 3))), key)


def test_an_observation_that_is_not_finite_is_an_error():
    values = np.zeros((5, 2, 3))
    values[1, 0, 2] = np.nan
    with pytest.raises(EnvError, match=r"'fixed'.*not finite"):
        get_stats_random_rollout(settings(init_env_steps=8), FixedEnv(values))
