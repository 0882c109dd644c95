"""Parts of TorchRL in a run: every loss trains its weights, and a stop and a resume change no bit."""

import copy

import jsonschema
import pytest
import torch
from rlcore_plugin_testing.config_schema import config_schema
from rlcore_plugin_torchrl.parts.env import TorchRLEnv
from rlcore_plugin_torchrl.parts.library import part_class, torchrl_module
from rlcore_plugin_torchrl.parts.loss import buildable

from rlcore import Context
from rlcore.config.sections import load_config
from rlcore.errors import ConfigError, MissingPluginError
from rlcore.run.build import build
from rlcore.state import flatten

NETWORK = {"part": "MLP", "num_cells": [8]}
DISCRETE = {"use": "torchrl", "part": "GymEnv", "env_name": "CartPole-v1", "num_envs": 2}
CONTINUOUS = {"use": "torchrl", "part": "gym", "env_name": "Pendulum-v1", "num_envs": 2}
REPLAY = {"use": "torchrl", "capacity": 200, "minibatch_size": 8, "warmup_frames": 20, "updates_per_batch": 2}
WITHOUT_REPLACEMENT = {"sampler": {"part": "SamplerWithoutReplacement"}}
GAE = {"use": "torchrl", "part": "GAE", "lmbda": 0.95}
BY_VALUES = ("DQNLoss", "DistributionalDQNLoss", "DiscreteCQLLoss")
DETERMINISTIC = ("DDPGLoss", "TD3Loss", "TD3BCLoss")
WITH_ADVANTAGES = ("A2CLoss", "ClipPPOLoss", "IPPOLoss", "KLPENPPOLoss", "MAPPOLoss", "PPOLoss", "ReinforceLoss")


def config_of(loss, folder="runs", **changes):
    """Return a config with a loss of TorchRL, and the networks, env and buffer that it needs."""
    model = {"use": "torchrl"}
    if loss in BY_VALUES:
        model |= {"action_value": NETWORK} | ({"atoms": 5} if loss == "DistributionalDQNLoss" else {})
    else:
        model |= {"actor": NETWORK} | ({"distribution": "deterministic"} if loss in DETERMINISTIC else {})
        model |= {"value": NETWORK} if loss in WITH_ADVANTAGES or "IQL" in loss else {}
        model |= {"qvalue": NETWORK} if loss not in (*WITH_ADVANTAGES, "BCLoss") else {}
    discrete = loss in BY_VALUES or loss.startswith("Discrete")
    others = {"estimator": GAE, "buffer": {"minibatch_size": 20}} if loss in WITH_ADVANTAGES else {"buffer": REPLAY}
    return {
        "run": {"name": "run", "total_frames": 160, "folder": str(folder)},
        "env": DISCRETE if discrete else CONTINUOUS,
        "model": model,
        "loss": {"use": "torchrl", "part": loss},
        "optimizer": [{"use": "adam"}],
        "collector": {"frames_per_batch": 40},
        "checkpoint": {"every": 80},
        **others,
        **changes,
    }


def trained(config, write=False, **options):
    """Train a config, and return its trainer."""
    trainer = build(load_config(copy.deepcopy(config)), write=write, **options).trainer
    trainer.train()
    return trainer


def test_a_part_is_named_in_use_as_by_its_key():
    config = config_of("DQNLoss")
    config["loss"]["gamma"] = 0.9
    named = {
        **config,
        "env": {"use": "torchrl:gym", **{key: value for key, value in DISCRETE.items() if key not in ("use", "part")}},
        "loss": {"use": "torchrl:DQNLoss", "gamma": 0.9},
        "buffer": {**REPLAY, "use": "torchrl:TensorDictReplayBuffer"},
    }
    one, other = (trained(which).parts.model.state_dict() for which in (config, named))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_what_use_names_is_held_against_the_release():
    config = config_of("SACLoss")
    for section, keys, told in [
        ("loss", {"use": "torchrl:SACLos"}, "has no such loss; did you mean 'SACLoss'"),
        ("env", {"use": "torchrl:gmy"}, "has no such env; did you mean"),
        ("buffer", {"use": "torchrl:TensorDictReplyBuffer"}, "did you mean 'TensorDictReplayBuffer'"),
        ("loss", {"use": "torchrl:SACLoss", "gama": 0.9}, r"\[loss\] gama"),
        ("loss", {"use": "torchrl:SACLoss", "part": "PPOLoss"}, r"\[loss\] part: .*'SACLoss'"),
        ("optimizer", [{"use": "torchrl:Adam"}], "unknown optimizer 'torchrl:Adam'"),
        ("model", {"use": "torchrl:MLP"}, "unknown model 'torchrl:MLP'"),
    ]:
        with pytest.raises(ConfigError, match=told):
            load_config(config | {section: keys})


def test_the_schema_of_configs_knows_parts_and_their_keyword_arguments():
    schema = config_schema()
    (loss,) = [one for one in schema["properties"]["loss"]["anyOf"] if one.get("title") == "loss torchrl"]
    validator = jsonschema.Draft202012Validator({**loss, "$defs": schema["$defs"]})
    assert validator.is_valid({"use": "torchrl:SACLoss", "gamma": 0.9, "num_qvalue_nets": 2})
    assert validator.is_valid({"use": "torchrl", "part": "SACLoss"})
    assert not validator.is_valid({"use": "sac:SACLoss"})


def test_the_losses_of_a_release_can_be_built():
    assert len(buildable()) >= 22


@pytest.mark.parametrize("loss", buildable())
def test_a_loss_trains_every_weight_but_its_targets(loss):
    trainer = build(load_config(copy.deepcopy(config_of(loss))), write=False).trainer
    weights = {name: weight.clone() for name, weight in trainer.parts.model.named_parameters() if weight.requires_grad}
    trainer.train()
    assert trainer.progress.updates >= 6
    still = [name for name, weight in trainer.parts.model.named_parameters() if torch.equal(weight, weights[name])]
    assert not still


@pytest.mark.parametrize(
    ("loss", "changes"),
    [("ClipPPOLoss", {"env": DISCRETE}), ("SACLoss", {"buffer": REPLAY | WITHOUT_REPLACEMENT}), ("DQNLoss", {})],
)
def test_a_stop_and_a_resume_change_no_bit(loss, changes, tmp_path):
    whole = trained(config_of(loss, tmp_path / "whole", **changes), write=True)
    config = config_of(loss, tmp_path / "parts", **changes)
    first = build(load_config(copy.deepcopy(config)), write=True).trainer
    first.stop_at = 80
    first.train()
    second = trained(config, write=True, resume=True)
    assert second.progress.frames == 160
    tensors = [{}, {}]
    trees = [flatten(one.state_dict(), "", into) for one, into in zip((whole, second), tensors, strict=True)]
    assert trees[0].keys() == trees[1].keys()
    assert tensors[0].keys() == tensors[1].keys()
    differing = [name for name in tensors[0] if not torch.equal(tensors[0][name], tensors[1][name])]
    assert not [name for name in differing if "time" not in name]


def env_of(**keys):
    config = TorchRLEnv.Config(**{key: value for key, value in {**DISCRETE, **keys}.items() if key != "use"})
    return TorchRLEnv(config, Context.alone("test"))


def test_an_env_that_does_not_repeat_says_so():
    env = env_of()
    env.reset(seed=1)
    state = env.state_dict()
    env.load_state_dict(state)
    assert env.unrestored() is None
    state["worlds"][0]["observation"] += 1
    env.load_state_dict(state)
    assert "1 of 2 worlds of GymEnv of TorchRL gave another observation" in env.unrestored()


def test_a_long_episode_is_not_repeated():
    env = env_of(most_repeated=0)
    env.reset(seed=1)
    env.step(env.spec.action_space.sample().repeat(2))
    assert "more than [env] most_repeated = 0" in env.inexact()


@pytest.mark.parametrize(
    ("section", "changes", "message"),
    [
        ("env", {"part": "GymEn"}, "no such env; did you mean 'GymEnv'"),
        ("env", {"env_nam": "CartPole-v1"}, "did you mean 'env_name'"),
        ("env", {"env_name": "CartPole-v9"}, "GymEnv of TorchRL refuses this"),
        ("env", {"transforms": [{"part": "RewardScaling", "lok": 0.0}]}, "did you mean 'loc'"),
        ("loss", {"part": "SACLos"}, "did you mean 'SACLoss'"),
        ("loss", {"alpha_int": 1.0}, "did you mean 'alpha_init'"),
        ("loss", {"alpha_init": "much"}, "alpha_init: Input should be a valid number"),
        ("loss", {"part": "DTLoss"}, "takes networks that [model] does not make"),
        ("loss", {"value_estimator": "TD2"}, "TorchRL has no such estimator"),
        ("loss", {"part": "DDPGLoss"}, "takes an actor without one: 'deterministic'"),
        ("model", {"value": NETWORK}, "SACLoss of TorchRL does not train it"),
        ("model", {"actor": {"part": "MLP", "num_cell": [8]}}, "did you mean 'num_cells'"),
        ("model", {"distribution": "TanhNorm"}, "did you mean 'TanhNormal'"),
        ("buffer", {"sampler": {"part": "RandomSample"}}, "did you mean 'RandomSampler'"),
        ("buffer", {"batch_size": 3}, "is called minibatch_size here"),
    ],
)
def test_a_wrong_word_is_refused_before_the_first_frame(section, changes, message):
    config = config_of("SACLoss")
    config[section] = config[section] | changes
    if section == "model" and "value" in changes:
        config["loss"]["part"] = "REDQLoss"
        message = message.replace("SACLoss", "REDQLoss")
    with pytest.raises(ConfigError) as caught:
        build(load_config(config), write=False)
    assert message in str(caught.value)


def test_without_torchrl_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torchrl", None)
    with pytest.raises(MissingPluginError, match=r"pip install \"rlcore-plugin-torchrl\[torchrl\]\""):
        torchrl_module("torchrl.no_module")


def test_fifteen_libraries_of_envs_are_reachable_by_name():
    names = ["brax", "dm_control", "gym", "habitat", "isaac_gym", "jumanji", "lb_foraging", "meltingpot", "mo_gym"]
    names += ["open_spiel", "petting_zoo", "procgen", "robohive", "smacv2", "unity_ml_agents", "vmas", "genesis"]
    assert len({part_class("env", name, "part") for name in names}) == 17
