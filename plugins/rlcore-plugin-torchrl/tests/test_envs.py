"""Envs that carry their transforms: what their observations and rewards are, and that collectors take them."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from rlcore import ConfigError, Factory, rollout
from rlcore.helpers import make_collector_onpolicy, parallel_env_constructor, transformed_env_constructor


def settings(**further):
    return SimpleNamespace(**{"env_name": "CartPole-v1", "norm_stats": False, **further})


def observations(env, seed=3, steps=5):
    seen = [np.array(env.reset(seed=seed))]
    rewards = []
    for _ in range(steps):
        step = env.step(np.zeros(env.spec.num_envs, dtype=np.int64))
        seen.append(np.array(step.observation))
        rewards.append(np.array(step.reward))
    env.close()
    return np.stack(seen), np.stack(rewards)


def test_without_transforms_it_is_the_env_itself():
    plain, rewards = observations(transformed_env_constructor(settings())())
    same, _ = observations(transformed_env_constructor(settings(catframes=3), return_transformed_envs=False)())
    assert plain.shape == (6, 1, 4)
    assert (rewards == 1).all()
    np.testing.assert_array_equal(plain, same)


def test_observations_are_normalised_by_given_statistics():
    plain, _ = observations(transformed_env_constructor(settings())())
    loc, scale = np.arange(4.0), np.full(4, 2.0)
    for name in ("stats", "obs_norm_state_dict"):
        seen, _ = observations(transformed_env_constructor(settings(), **{name: {"loc": loc, "scale": scale}})())
        np.testing.assert_allclose(seen, (plain - loc) / scale, rtol=1e-6)


def test_statistics_are_taken_of_random_frames():
    make = transformed_env_constructor(settings(norm_stats=True, init_env_steps=2000))
    env = make(num_envs=4)
    space = env.spec.action_space
    space.seed(0)
    env.reset(seed=0)
    seen = [np.array(env.step(np.array([space.sample() for _ in range(4)])).observation) for _ in range(500)]
    values = np.concatenate(seen)
    assert np.abs(values.mean(0)).max() < 0.8
    assert (np.abs(values.std(0) - 1) < 0.8).all()


def test_observations_are_stacked_and_rewards_scaled():
    env = transformed_env_constructor(settings(catframes=3, reward_scaling=0.5, reward_loc=3.0))(num_envs=2)
    assert env.spec.observation_space.shape == (12,)
    seen, rewards = observations(env)
    np.testing.assert_array_equal(seen[1][:, :4], seen[0][:, :4])
    np.testing.assert_array_equal(seen[3][:, :4], seen[1][:, 8:])
    assert (rewards == -1.0).all()


def test_episodes_end_at_the_limit_of_frames():
    env = transformed_env_constructor(settings(max_frames_per_traj=6, frame_skip=2))()
    env.reset(seed=0)
    flags = [bool(env.step(np.array([step % 2])).truncated[0]) for step in range(3)]
    assert flags == [False, False, True]


def test_an_env_of_ones_own():
    make = Factory(total_frames=1)
    make.env("gymnasium", id="CartPole-v1")
    assert transformed_env_constructor(settings(), custom_env=make.context.env)() is make.context.env
    called = []

    def maker(**keys):
        called.append(keys)
        return make.context.env

    transformed_env_constructor(settings(), custom_env_maker=maker)(gravity=1.0)
    assert called == [{"gravity": 1.0}]


def test_several_envs_at_once_and_in_another_process():
    make = parallel_env_constructor(settings(env_per_collector=3, catframes=2))
    env = pickle.loads(pickle.dumps(make))()
    assert (env.spec.num_envs, env.spec.observation_space.shape) == (3, (8,))
    assert rollout(env, 4).batch_size == (3, 4)
    env.close()


def test_several_envs_of_a_maker():
    def maker():
        make = Factory(total_frames=1)
        make.env("gymnasium", id="CartPole-v1")
        return make.context.env

    env = parallel_env_constructor(settings(env_per_collector=2), custom_env_maker=maker)()
    assert env.reset(seed=0).shape == (2, 4)
    with pytest.raises(ConfigError, match="custom_env is one env"):
        parallel_env_constructor(settings(), custom_env=maker())
    env.close()


def test_a_collector_takes_such_an_env():
    factory = Factory(total_frames=1)
    factory.env("gymnasium", id="CartPole-v1")
    model = factory.model("mlp", hidden=[8])
    cfg = settings(num_workers=1, env_per_collector=2, frames_per_batch=32, reward_scaling=0.1)
    collector = make_collector_onpolicy(parallel_env_constructor(cfg), model, cfg)
    batch = collector.collect()
    assert batch.batch_size == (2, 16)
    assert batch["next", "reward"].unique().tolist() == pytest.approx([0.1])
    collector.close()


@pytest.mark.parametrize(
    ("further", "message"),
    [
        ({"vecnorm": True}, "running-observation-norm"),
        ({"from_pixels": True}, "from_pixels"),
        ({"noops": 30}, "noops = 30"),
        ({"norm_rewards": True}, "reward-norm"),
        ({"env_library": "isaac"}, "env_library = 'isaac'"),
    ],
)
def test_what_has_another_place_is_refused_with_it(further, message):
    with pytest.raises(ConfigError, match=message):
        transformed_env_constructor(settings(**further))


def test_arguments_that_mean_nothing_here():
    with pytest.raises(ConfigError, match="video_tag = 'train'"):
        transformed_env_constructor(settings(), video_tag="train")
    with pytest.raises(ConfigError, match="action_dim_gsde"):
        transformed_env_constructor(settings(), action_dim_gsde=2)
    with pytest.raises(ConfigError, match="batch_transform = False"):
        parallel_env_constructor(settings(batch_transform=False))
    with pytest.raises(ConfigError, match="env_name"):
        transformed_env_constructor(SimpleNamespace())


def test_closing_reaches_the_env():
    closed = []
    make = Factory(total_frames=1)
    make.env("gymnasium", id="CartPole-v1")
    make.context.env.close = lambda: closed.append(1)
    transformed_env_constructor(settings(reward_scaling=0.5), custom_env=make.context.env)().close()
    assert closed == [1]
