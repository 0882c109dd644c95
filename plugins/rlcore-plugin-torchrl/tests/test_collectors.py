"""Collectors that builders make over functions that make envs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from rlcore_plugin_rollout.local import LocalCollector
from rlcore_plugin_testing import difference
from rlcore_plugin_torchrl.helpers.joined import JoinedEnv

from rlcore.errors import ConfigError
from rlcore.helpers import (
    make_collector_offpolicy,
    make_collector_onpolicy,
    make_trainer,
    sync_async_collector,
    sync_sync_collector,
)
from rlcore.scripts.factory import Factory

FORK = {"frames_per_batch": 64, "start_method": "fork"}


def cartpole(num_envs=1, id="CartPole-v1"):
    make = Factory(total_frames=1)
    make.env("gymnasium", id=id, num_envs=num_envs, vectorization="serial")
    return make.context.env


@pytest.fixture
def model():
    make = Factory(total_frames=1, seed=1)
    make.env("gymnasium", id="CartPole-v1")
    return make.model("mlp", hidden=[8])


def collected(collector, batches=2):
    found = torch.cat([collector.collect().clone() for _ in range(batches)], dim=1)
    collector.close()
    return found


@pytest.mark.parametrize(
    ("env_fns", "numbers"),
    [
        (cartpole, {"num_env_per_collector": 2, "num_collectors": 2}),
        ([cartpole] * 4, {"num_collectors": 2}),
        ([cartpole] * 4, {"num_env_per_collector": 2}),
        ([cartpole] * 4, {"num_env_per_collector": 3, "num_collectors": 2}),
    ],
)
def test_either_number_follows_from_the_other_and_two_workers_collect_what_one_does(model, env_fns, numbers):
    one = sync_sync_collector([cartpole] * 4, None, num_collectors=1, policy=model, frames_per_batch=64)
    assert isinstance(one, LocalCollector)
    two = sync_sync_collector(env_fns, None, **numbers, policy=model, **FORK)
    assert len(two.pids()) == 2
    expected, found = collected(one), collected(two)
    assert found.batch_size == (4, 32)
    assert difference(*(batch.flatten_keys("/").to_dict() for batch in (expected, found))) is None


def test_workers_that_do_not_wait_collect_whole_batches(model):
    collector = sync_async_collector([cartpole] * 2, [{}, {}], num_collectors=2, policy=model, max_lag=2, **FORK)
    assert collected(collector, batches=3).batch_size == (2, 96)
    assert collector.inexact() is not None


def test_an_on_policy_collector_from_settings_trains(model):
    cfg = SimpleNamespace(
        num_workers=4, env_per_collector=2, frames_per_batch=64, total_frames=128, start_method="fork"
    )
    collector = make_collector_onpolicy(cartpole, model, cfg, make_env_kwargs={"num_envs": 2})
    assert len(collector.pids()) == 2

    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.critic = model.critic

        def forward(self, batch):
            return {"loss": self.critic(batch["observation"]).square().mean()}

    further = {"optim_steps_per_batch": 2, "batch_size": 16, "sub_traj_len": 8}
    trainer = make_trainer(collector, Loss(), cfg=SimpleNamespace(**vars(cfg), **further))
    before = model.critic.layers[0].weight.clone()
    trainer.train()
    assert trainer.collected_frames == 128
    assert not torch.equal(model.critic.layers[0].weight, before)


def test_one_worker_by_the_settings_is_this_process(model):
    cfg = SimpleNamespace(num_workers=2, env_per_collector=2, frames_per_batch=64)
    assert isinstance(make_collector_onpolicy(lambda: cartpole(2), model, cfg), LocalCollector)


def test_joined_envs_go_on_from_their_state():
    env, other = (JoinedEnv([cartpole(2), cartpole(1)]) for _ in range(2))
    env.reset(seed=3)
    action = torch.zeros(3, dtype=torch.long).numpy()
    for _ in range(12):
        env.step(action)
    assert env.inexact() is None
    other.reset(seed=4)
    other.load_state_dict(env.state_dict())
    for _ in range(12):
        one, two = env.step(action), other.step(action)
        assert (one.observation == two.observation).all()
        assert dict(one.infos).keys() == dict(two.infos).keys()
    env.close()


@pytest.mark.parametrize(
    ("env_fns", "keys", "message"),
    [
        (cartpole, {"num_collectors": 2}, "num_env_per_collector and num_collectors are both needed"),
        ([cartpole] * 4, {}, "give num_env_per_collector or num_collectors"),
        ([cartpole] * 4, {"num_collectors": 3}, "4 envs cannot be divided evenly among 3 collectors"),
        ([cartpole] * 4, {"num_collectors": 1, "num_env_per_collector": 3}, "= 3 is less than the 4 envs"),
        ([cartpole] * 2, {"num_collectors": 1, "max_frames_per_traj": 10}, "the limit belongs to the env"),
        ([cartpole] * 2, {"num_collectors": 1, "policy": torch.nn.Linear(1, 1)}, "a Linear is no model of rlcore"),
        ([cartpole] * 2, {"num_collectors": 2, "postproc": len}, "postproc"),
        ([cartpole, lambda: cartpole(id="Acrobot-v1")], {"num_collectors": 1}, "differ in observation_space"),
    ],
)
def test_what_cannot_be_meant_is_refused(model, env_fns, keys, message):
    with pytest.raises(ConfigError, match=message):
        sync_sync_collector(env_fns, None, **{"policy": model, "frames_per_batch": 64, **keys})


def test_keywords_for_another_number_of_envs_are_refused(model):
    with pytest.raises(ConfigError, match="3 entries for 2 envs"):
        sync_sync_collector([cartpole] * 2, [{}, {}, {}], num_collectors=1, policy=model)


def test_exploration_other_than_sampling_is_refused(model):
    with pytest.raises(ConfigError, match="exploration_type = 'mode'"):
        make_collector_onpolicy(cartpole, model, SimpleNamespace(exploration_type="mode"))


@pytest.mark.parametrize(("ahead", "mode"), [(True, "async"), (False, "sync")])
def test_an_off_policy_collector_goes_on_while_the_learner_learns_if_the_settings_say_so(model, ahead, mode):
    cfg = SimpleNamespace(num_workers=2, env_per_collector=1, async_collection=ahead, frames_per_batch=32)
    collector = make_collector_offpolicy(cartpole, model, SimpleNamespace(**vars(cfg), start_method="fork"))
    assert collector._config.mode == mode
    assert collected(collector).batch_size == (2, 32)


@pytest.mark.parametrize("cfg", [{"multi_step": True}, {"init_random_frames": 100}])
def test_what_an_off_policy_collector_does_not_do_is_refused(model, cfg):
    with pytest.raises(ConfigError, match=next(iter(cfg))):
        make_collector_offpolicy(cartpole, model, SimpleNamespace(**cfg))
