"""The builders with envs and actors of TorchRL: what TorchRL's own builders return, and that a trainer runs on it."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import pytest
import torch

from rlcore import ConfigError, Factory
from rlcore.helpers import (
    get_stats_random_rollout,
    make_collector_offpolicy,
    make_collector_onpolicy,
    make_dqn_actor,
    make_dqn_loss,
    make_replay_buffer,
    make_target_updater,
    make_trainer,
    parallel_env_constructor,
    sync_sync_collector,
    transformed_env_constructor,
)

collectors = pytest.importorskip("torchrl.collectors")
envs = pytest.importorskip("torchrl.envs")
objectives = pytest.importorskip("torchrl.objectives")
builders = pytest.importorskip("torchrl.trainers.helpers.envs")

STATS = {"loc": torch.zeros(4), "scale": torch.full((4,), 2.0)}


def settings(**further):
    return SimpleNamespace(
        **{
            "env_library": "gym",
            "env_name": "CartPole-v1",
            "num_workers": 1,
            "env_per_collector": 1,
            "frames_per_batch": 32,
            "total_frames": 64,
            "max_frames_per_traj": 10,
            "init_random_frames": 0,
            "init_env_steps": 20,
            "optim_steps_per_batch": 1,
            "batch_size": 8,
            "buffer_size": 100,
            "hidden": [8],
            **further,
        }
    )


@pytest.fixture
def actor():
    return make_dqn_actor(transformed_env_constructor(settings(), stats=STATS)(), settings(), "cpu")


def test_an_env_has_the_transforms_of_torchrls_builder():
    own = transformed_env_constructor(settings(catframes=2, reward_scaling=0.5), stats=STATS)()
    theirs = builders.transformed_env_constructor(
        SimpleNamespace(
            **vars(builders.EnvConfig(env_name="CartPole-v1", catframes=2, reward_scaling=0.5)), collector_device="cpu"
        ),
        stats=STATS,
    )()
    assert repr(own) == repr(theirs)
    rollouts = []
    for env in (own, theirs):
        env.set_seed(0)
        torch.manual_seed(0)
        rollouts.append(env.rollout(5))
    assert (rollouts[0] == rollouts[1]).all()


def test_an_env_of_ones_own_is_transformed():
    env = envs.GymEnv("CartPole-v1")
    for keys in ({"custom_env": env}, {"custom_env_maker": functools.partial(envs.GymEnv, "CartPole-v1")}):
        made = transformed_env_constructor(settings(), stats=STATS, **keys)()
        assert "observation_vector" in made.reset()
    assert isinstance(transformed_env_constructor(SimpleNamespace(), custom_env=env)(), envs.TransformedEnv)


def test_a_function_that_makes_one_needs_the_setting():
    with pytest.raises(ConfigError, match="set env_library = 'gym'"):
        transformed_env_constructor(
            settings(env_library="gymnasium"), custom_env_maker=lambda: envs.GymEnv("CartPole-v1")
        )


def test_statistics_are_of_the_only_observation():
    for env in (None, envs.GymEnv("CartPole-v1"), transformed_env_constructor(settings(), stats=STATS)()):
        stats = get_stats_random_rollout(settings(), env)
        assert stats["loc"].shape == (4,)
        assert (stats["scale"] > 0).all()
    with pytest.raises(ConfigError, match="2 observations"):
        get_stats_random_rollout(settings(), envs.TransformedEnv(env, envs.RewardSum(["reward"], ["sum"])))


def test_a_loss_and_its_updater_are_torchrls(actor):
    loss, updater = make_dqn_loss(actor, settings(loss="double"))
    assert isinstance(loss, objectives.DQNLoss)
    assert isinstance(updater, objectives.SoftUpdate)
    assert isinstance(make_target_updater(settings(hard_update=True), loss), objectives.HardUpdate)


@pytest.mark.parametrize("builder", [make_collector_onpolicy, make_collector_offpolicy])
def test_a_trainer_runs_on_a_collector_of_torchrl(builder, actor, tmp_path):
    cfg = settings(buffer_scratch_dir=str(tmp_path))
    collector = builder(transformed_env_constructor(cfg, stats=STATS), actor, cfg)
    assert isinstance(collector, collectors.Collector)
    loss, updater = make_dqn_loss(actor, cfg)
    before = [parameter.clone() for parameter in loss.parameters()]
    buffer = make_replay_buffer("cpu", cfg) if builder is make_collector_offpolicy else None
    trainer = make_trainer(collector, loss, None, updater, actor, buffer, cfg=cfg)
    trainer.train()
    assert trainer.collected_frames == 64
    assert any(not torch.equal(old, new) for old, new in zip(before, loss.parameters(), strict=True))


def test_trajectories_end_at_the_limit(actor):
    cfg = settings(max_frames_per_traj=3)
    collector = make_collector_onpolicy(transformed_env_constructor(cfg, stats=STATS), actor, cfg)
    batch = next(iter(collector))
    collector.shutdown()
    assert batch["collector", "mask"].sum(-1).max() == 3
    assert batch["frames_of_trajectory"].max() == 2


def test_rewards_of_several_steps_are_summed(actor):
    cfg = settings(multi_step=True, n_steps_return=2, gamma=0.5)
    collector = make_collector_offpolicy(transformed_env_constructor(cfg, stats=STATS), actor, cfg)
    batch = next(iter(collector))
    collector.shutdown()
    assert batch["next", "reward"].max() == 1.5


@pytest.mark.slow
def test_several_workers_and_several_envs(actor):
    cfg = settings(num_workers=2, async_collection=True)
    collector = make_collector_offpolicy(transformed_env_constructor(cfg, stats=STATS), actor, cfg)
    assert isinstance(collector, collectors.MultiAsyncCollector)
    assert sum(batch["collector", "mask"].sum().item() for batch in collector) == 64
    collector.shutdown()
    env = parallel_env_constructor(settings(env_per_collector=2), stats=STATS)
    assert env.batch_size == (2,)
    collector = sync_sync_collector(env, None, 1, 1, policy=actor, frames_per_batch=10, total_frames=20)
    assert [batch.batch_size for batch in collector] == [(2, 5)] * 2


def test_an_actor_and_an_env_of_two_libraries_are_refused(actor):
    own = transformed_env_constructor(SimpleNamespace(env_name="CartPole-v1", norm_stats=False))
    with pytest.raises(ConfigError, match="not one of TorchRL"):
        make_collector_onpolicy(own, actor, settings())
    factory = Factory(total_frames=1)
    factory.env("gymnasium", id="CartPole-v1")
    model = factory.model("mlp", hidden=[8])
    with pytest.raises(ConfigError, match="does not act in envs of TorchRL"):
        sync_sync_collector(lambda: envs.GymEnv("CartPole-v1"), None, 1, 1, policy=model)


def test_a_way_to_explore_that_is_not_known_is_refused(actor):
    cfg = settings(exploration_type="nosuch")
    with pytest.raises(ConfigError, match="exploration_type = 'nosuch' must be one of"):
        make_collector_onpolicy(transformed_env_constructor(cfg, stats=STATS), actor, cfg)
