"""A factory builds in a script what a config would name, and a trainer of it trains, saves and evaluates the same."""

from __future__ import annotations

import pytest
import torch

from rlcore import ConfigError, Factory, LogValidationReward, LRSchedulerHook, PluginError, build
from rlcore.config.raw import RawConfig
from rlcore.config.sections import validate

KEYS = {
    "env": {"use": "gymnasium", "id": "CartPole-v1", "num_envs": 2},
    "model": {"use": "mlp", "hidden": [8]},
    "estimator": {"use": "ppo:gae"},
    "loss": {"use": "ppo"},
    "collector": {"use": "local", "frames_per_batch": 32},
    "buffer": {"use": "rollout", "epochs": 2, "minibatch_size": 16},
    "evaluator": {"use": "episodes", "episodes": 2, "every": 64},
}


def make(total_frames=128, **further):
    factory = Factory(total_frames=total_frames, seed=3)
    for kind, keys in {**KEYS, **further}.items():
        keys = dict(keys)
        getattr(factory, kind)(keys.pop("use"), **keys)
    return factory


def trainer_of(factory, **arguments):
    optimizer = factory.optimizer("adam", lr=1e-3)
    trainer = factory.trainer(optimizer=optimizer, clip_norm=0.5, progress_bar=False, log_interval=32, **arguments)
    LRSchedulerHook(factory.scheduler("linear", target="lr")).register(trainer)
    return trainer


def test_a_script_and_a_config_train_the_same(tmp_path):
    sections = {
        **KEYS,
        "run": {"total_frames": 128, "seed": 3, "device": "cpu", "folder": str(tmp_path)},
        "optimizer": [{"use": "adam", "lr": 1e-3}],
        "scheduler": [{"use": "linear", "target": "lr"}],
        "learner": {"max_grad_norm": 0.5},
        "metrics": {"every": 32},
    }
    configured = build(validate(RawConfig(sections, tmp_path / "config.toml")), write=False).trainer
    configured.train()
    scripted = trainer_of(make())
    scripted.train()
    ours, theirs = scripted.model.state_dict(), configured.model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert scripted.last_evaluation == configured.last_evaluation
    assert scripted.progress == configured.progress
    same = {key for key in configured.metrics.latest if key.startswith(("episode/", "evaluation/"))}
    assert {key: scripted.metrics.latest[key] for key in same} == {key: configured.metrics.latest[key] for key in same}


def test_a_script_is_resumed_to_the_bit(tmp_path):
    whole = trainer_of(make())
    whole.train()
    first = trainer_of(make(), save_trainer_file=tmp_path / "run")
    first.stop_at = 64
    first.train()
    second = trainer_of(make(), save_trainer_file=tmp_path / "run").load_from_file(tmp_path / "run")
    assert second.collected_frames == 64
    second.train()
    ours, theirs = second.model.state_dict(), whole.model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert second.last_evaluation == whole.last_evaluation


def test_every_part_is_saved_once(tmp_path):
    trainer = trainer_of(make())
    names = set(trainer.app_state)
    assert {"model", "collector", "buffer", "optimizer", "progress", "generators", "metrics"} <= names
    assert "loss_module" not in names, "its weights are the model's"


def test_hooks_and_loggers_of_plugins(tmp_path):
    factory = Factory(total_frames=64, seed=3, folder=tmp_path / "run")
    for kind, keys in KEYS.items():
        keys = dict(keys)
        getattr(factory, kind)(keys.pop("use"), **keys)
    hook = factory.hook("reward-clip", limit=0.5)
    trainer = trainer_of(factory, logger=factory.logger("csv"), hooks=[hook])
    rewards = []
    trainer.register_op("pre_steps_log", lambda batch: rewards.append(batch["next", "reward"].max().item()))
    trainer.train()
    assert set(rewards) == {0.5}
    lines = (tmp_path / "run" / "metrics.csv").read_text().splitlines()
    assert any(line.startswith("64,episode/return,") for line in lines)


def test_transforms_are_seen_by_what_follows():
    factory = Factory(total_frames=64)
    factory.env("gymnasium", id="CartPole-v1")
    factory.transform("transforms:frame-stack", frames=3)
    assert factory.context.env_spec.observation_space.shape == (12,)
    model = factory.model("mlp", hidden=[4])
    assert model.actor(torch.zeros(1, 12)).shape[0] == 1


def test_a_validation_reward_of_the_script_env():
    factory = Factory(total_frames=64, seed=3)
    env = factory.env("gymnasium", id="CartPole-v1")
    for kind in ("model", "estimator", "loss", "collector", "buffer"):
        keys = dict(KEYS[kind])
        getattr(factory, kind)(keys.pop("use"), **keys)
    trainer = trainer_of(factory)
    record = LogValidationReward(
        record_interval=1, record_frames=40, policy_exploration=trainer.model.policy, environment=env
    )
    record.register(trainer)
    trainer.train()
    assert trainer.metrics.latest["r_evaluation"] == 1.0
    assert 8 <= trainer.metrics.latest["total_r_evaluation"] <= 40


def test_what_cannot_be_built_is_said():
    factory = Factory(total_frames=64)
    with pytest.raises(ConfigError, match=r"env .gymnasium.*num_env"):
        factory.env("gymnasium", id="CartPole-v1", num_env=2)
    with pytest.raises(PluginError, match="gymnasum"):
        factory.env("gymnasum")
    with pytest.raises(ConfigError, match="asks for the env"):
        factory.model("mlp")
    with pytest.raises(ConfigError, match="requires the model parts q_values"):
        make().loss("dqn")


def test_a_loss_with_target_networks_brings_what_moves_them():
    factory = Factory(total_frames=256, seed=3)
    factory.env("gymnasium", id="CartPole-v1")
    model = factory.model("dqn:q-network", hidden=[8])
    factory.loss("dqn", target_interval=4)
    factory.collector(frames_per_batch=64)
    factory.buffer("replay", capacity=256, minibatch_size=16, updates_per_batch=4, warmup_frames=64)
    before = [value.clone() for value in model.target_q_values.parameters()]
    trainer = factory.trainer(optimizer=factory.optimizer("adam", lr=1e-2), progress_bar=False)
    assert "target_net_updater" in trainer.app_state
    trainer.train()
    assert trainer.progress.updates == 16
    targets, sources = list(model.target_q_values.parameters()), list(model.q_values.parameters())
    assert not any(torch.equal(old, new) for old, new in zip(before, targets, strict=True))
    assert all(torch.equal(source, target) for source, target in zip(sources, targets, strict=True)), (
        "copied at step 16"
    )
