"""`make_dqn_actor` and `LoggerConfig`: with the other builders they make a script that trains and resumes."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import gymnasium
import pytest
import torch
from rlcore_plugin_testing import difference

from rlcore.errors import ConfigError, NotSupportedError
from rlcore.helpers import (
    LoggerConfig,
    make_collector_offpolicy,
    make_dqn_actor,
    make_dqn_loss,
    make_replay_buffer,
    make_trainer,
    transformed_env_constructor,
)

SHORT = {
    "env_name": "CartPole-v1",
    "norm_stats": False,
    "hidden": [16],
    "total_frames": 512,
    "frames_per_batch": 64,
    "optim_steps_per_batch": 2,
    "batch_size": 16,
    "buffer_size": 1000,
    "annealing_frames": 256,
    "env_per_collector": 1,
    "num_workers": 1,
    "async_collection": False,
    "value_network_update_interval": 10,
}


def settings(**values):
    return SimpleNamespace(**{**SHORT, **values})


def script(cfg):
    make_env = transformed_env_constructor(cfg)
    actor = make_dqn_actor(make_env(), cfg, "cpu")
    loss, updater = make_dqn_loss(actor, cfg)
    trainer = make_trainer(
        make_collector_offpolicy(make_env, actor, cfg),
        loss,
        target_net_updater=updater,
        policy_exploration=actor,
        replay_buffer=make_replay_buffer("cpu", cfg),
        cfg=cfg,
    )
    trainer.progress_bar = False
    return trainer, actor


def test_a_script_of_builders_trains_and_explores_less_and_less(tmp_path):
    trainer, actor = script(settings(buffer_scratch_dir=tmp_path))
    before = next(actor.parameters()).clone()
    epsilons = []
    for _ in trainer:
        actor.policy.refresh()
        epsilons.append(round(actor.policy.epsilon, 3))
    assert epsilons[0] > epsilons[2] > epsilons[-1] == 0.05
    assert not torch.equal(before, next(actor.parameters()))


@pytest.mark.parametrize("distributional", [False, True])
def test_the_network_fits_the_env_and_the_settings(distributional):
    cfg = settings(distributional=distributional, atoms=11)
    env = transformed_env_constructor(cfg)()
    actor = make_dqn_actor(env, cfg, "cpu")
    values = actor.q_values(torch.zeros(3, 4))
    assert values.shape == (3, 2)
    if distributional:
        assert difference(actor.q_values.support, torch.linspace(-3, 3, 11)) is None
    assert difference(values, make_dqn_actor(env, cfg).q_values(torch.zeros(3, 4))) is None
    assert difference(values, make_dqn_actor(env, settings(seed=1)).q_values(torch.zeros(3, 4))) is not None


@pytest.mark.parametrize(
    ("values", "message"),
    [({"noisy": True}, "noisy = True: make_dqn_actor has no such network"), ({"from_pixels": True}, "takes vectors")],
)
def test_a_network_that_is_not_there_is_refused(values, message):
    env = transformed_env_constructor(settings())()
    with pytest.raises(NotSupportedError, match=message):
        make_dqn_actor(env, settings(**values))


def test_another_env_is_refused_with_what_it_lacks():
    with pytest.raises(ConfigError, match="has no spec with observation_space"):
        make_dqn_actor(gymnasium.make("CartPole-v1"), settings())


def test_the_settings_of_a_logger_are_those_of_torchrl():
    theirs = pytest.importorskip("torchrl.trainers.helpers.logger").LoggerConfig
    assert dataclasses.asdict(LoggerConfig()) == dataclasses.asdict(theirs())
