"""Folders of learners, groups and modules say how to construct what they hold."""

import json

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from rlcore_plugin_learners.recorded import record, restored

from rlcore import (
    AlgorithmConfig,
    DefaultModelConfig,
    Learner,
    LearnerGroup,
    MultiRLModule,
    PPOConfig,
    PPOTorchLearner,
    RLModule,
    RLModuleSpec,
    TorchLearner,
)
from rlcore.errors import ConfigError

OBSERVATIONS, ACTIONS = Box(-1, np.inf, (3,), np.float32), Discrete(2)


class Policy(RLModule):
    def setup(self):
        size = self.model_config.get("size", 4)
        self.body, self.actor = torch.nn.Linear(3, size), torch.nn.Linear(size, 2)

    def _forward(self, batch):
        return {"action_dist_inputs": self.actor(self.body(batch["obs"]))}


class Cloning(TorchLearner):
    def compute_loss_for_module(self, *, module_id, config, batch, fwd_out):
        policy = self.module[module_id].get_train_action_dist_cls().from_logits(fwd_out["action_dist_inputs"])
        return -policy.logp(batch["actions"]).mean()


class Seven(Policy):
    def __init__(self, width, **spaces):
        self.width = width
        super().__init__(**spaces)


class Remembering(Seven):
    def get_ctor_args_and_kwargs(self):
        return (self.width,), {"observation_space": self.observation_space}


def rows(seed=0):
    generator = np.random.default_rng(seed)
    return {"obs": generator.normal(size=(8, 3)), "actions": generator.integers(0, 2, 8)}


def config(**settings):
    spec = RLModuleSpec(Policy, OBSERVATIONS, ACTIONS, {"size": 5})
    return AlgorithmConfig(learner_class=Cloning, lr=[[0, 1e-2], [100, 0.0]], **settings).rl_module(rl_module_spec=spec)


def same(one, other):
    assert type(one) is type(other) or not isinstance(one, dict)
    if isinstance(one, dict):
        assert set(one) == set(other)
        for name in one:
            same(one[name], other[name])
    else:
        np.testing.assert_array_equal(one, other)


def test_a_learner_comes_back_from_its_folder_alone(tmp_path):
    learner = config(grad_clip=0.5).build_learner()
    learner.update(rows())
    learner.add_module(module_id="second", module_spec=RLModuleSpec(Policy, OBSERVATIONS, ACTIONS))
    learner.update({"second": rows(1)})
    learner.save_to_path(tmp_path)
    again = Learner.from_checkpoint(tmp_path)
    assert type(again) is Cloning
    assert (again.config.grad_clip, again.config.lr) == (0.5, [[0, 1e-2], [100, 0.0]])
    assert again.module["default_policy"].model_config == {"size": 5}
    same(again.get_state(), learner.get_state())
    again.update({"second": rows(2)}), learner.update({"second": rows(2)})
    same(again.get_state(), learner.get_state())


def test_parts_of_a_folder_come_back_alone(tmp_path):
    group = config().build_learner_group()
    group.update(rows())
    group.save_to_path(tmp_path)
    weights = group.get_weights()
    for place in ("learner/rl_module", "rl_module"):
        several = MultiRLModule.from_checkpoint(tmp_path / place)
        same(several.get_state(), weights)
        one = RLModule.from_checkpoint(tmp_path / place / "default_policy")
        assert (type(one), one.model_config) == (Policy, {"size": 5})
        same(one.get_state(), weights["default_policy"])
        one.restore_from_path(tmp_path / place / "default_policy")
    same(Learner.from_checkpoint(tmp_path / "learner").get_state(), group.get_state()["learner"])
    again = LearnerGroup.from_checkpoint(tmp_path)
    same(again.get_state(), group.get_state())
    same(Learner.from_checkpoint(tmp_path).get_state(), group.get_state()["learner"])
    alone = LearnerGroup.from_checkpoint(Learner.from_checkpoint(tmp_path).save_to_path())
    same(alone.get_state(), group.get_state())
    with pytest.raises(ConfigError, match=r"LearnerGroup is no RLModule"):
        RLModule.from_checkpoint(tmp_path)
    with pytest.raises(ConfigError, match="nothing at 'rl_module/other'"):
        RLModule.from_checkpoint(tmp_path / "rl_module" / "other")


@pytest.mark.slow
def test_learners_in_processes_come_back_with_the_modules_that_they_have_now(tmp_path):
    group = config().learners(num_learners=2).build_learner_group()
    group.add_module(module_id="second", module_spec=RLModuleSpec(Policy, OBSERVATIONS, ACTIONS))
    group.update({"second": rows()})
    group.save_to_path(tmp_path)
    state = group.get_state()
    group.shutdown()
    again = LearnerGroup.from_checkpoint(tmp_path)
    assert len(again) == 2
    same(again.get_state(), state)
    again.shutdown()
    assert set(Learner.from_checkpoint(tmp_path / "learner").module.keys()) == {"default_policy", "second"}


def test_modules_of_a_model_come_back(tmp_path):
    learner = PPOConfig().environment("CartPole-v1").rl_module(model_config=DefaultModelConfig([8])).build_learner()
    learner.save_to_path(tmp_path)
    again = Learner.from_checkpoint(tmp_path)
    assert type(again) is PPOTorchLearner
    same(again.get_state(), learner.get_state())
    module = RLModule.from_checkpoint(learner.module["default_policy"].save_to_path())
    same(module.get_state(), learner.module["default_policy"].get_state())
    told = json.loads((tmp_path / "state.json").read_text())["metadata"]
    assert told["class"] == "rlcore_plugin_learners.ppo:PPOTorchLearner"
    assert told == learner.get_metadata()
    assert [name for name, _ in learner.get_checkpointable_components()] == ["rl_module"]


def test_what_has_no_readable_form_is_asked_for(tmp_path):
    settings = config().multi_agent(policies_to_train=lambda module_id, batch: True)
    learner = settings.build_learner()
    learner.save_to_path(tmp_path)
    with pytest.raises(
        ConfigError, match=r"config.policies_to_train is no file's: .*from_checkpoint\(path, config=\.\.\.\)"
    ):
        Learner.from_checkpoint(tmp_path)
    same(Learner.from_checkpoint(tmp_path, config=settings).get_state(), learner.get_state())
    with pytest.raises(ConfigError, match="unexpected keyword argument 'colour'"):
        Learner.from_checkpoint(tmp_path, settings, colour=1)
    module = Seven(7, observation_space=OBSERVATIONS)
    with pytest.raises(ConfigError, match="missing a required argument: 'width'"):
        RLModule.from_checkpoint(module.save_to_path())
    mine = Remembering(7, observation_space=OBSERVATIONS)
    assert RLModule.from_checkpoint(mine.save_to_path()).width == 7


def test_a_folder_names_no_class_but_those_that_belong_there(tmp_path):
    learner = config().build_learner()
    learner.save_to_path(tmp_path)
    file = tmp_path / "state.json"
    text = file.read_text()
    for name, told in (
        ("subprocess:Popen", "subprocess:Popen is no Learner"),
        ("nowhere_at_all:Thing", "cannot be imported here"),
        ("test_checkpoints", "cannot be imported here"),
    ):
        file.write_text(text.replace(f"{Cloning.__module__}:Cloning", name))
        with pytest.raises(ConfigError, match=told):
            Learner.from_checkpoint(tmp_path)
    described = json.loads(text)
    del described["constructors"]
    file.write_text(json.dumps(described))
    with pytest.raises(ConfigError, match="missing a required argument: 'config'"):
        Cloning.from_checkpoint(tmp_path)
    same(Cloning.from_checkpoint(tmp_path, config()).get_state(), learner.get_state())


@pytest.mark.parametrize(
    "value",
    [
        None,
        [1, 2.5, "a", (1, 2), {3, 4}, {1: {"b": (True,)}}],
        np.float32(2),
        Box(np.array([0, -np.inf], np.float32), np.array([1, 2], np.float32)),
        Dict({"b": Discrete(3, start=1), "a": Tuple([MultiBinary(2), MultiDiscrete([2, 3])])}),
        RLModuleSpec(Policy, OBSERVATIONS, ACTIONS, {"size": 2}),
        DefaultModelConfig([3]),
        PPOConfig(clip_param=0.1).environment("CartPole-v1"),
    ],
    ids=str,
)
def test_values_come_back_as_they_were(value):
    again = restored(json.loads(json.dumps(record(value, "value"))))
    assert again == value


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_infinite_numbers_come_back(value):
    assert restored(json.loads(json.dumps(record(value, "value")))) == value


def test_an_env_is_kept_by_its_spaces():
    env = gymnasium.make("CartPole-v1")
    again = restored(record(AlgorithmConfig().environment(env), "config"))
    assert (again.env, again.observation_space, again.action_space) == (None, env.observation_space, env.action_space)


@pytest.mark.parametrize("written", [{"kind": "pickle"}, {"kind": "dict"}, {"kind": "object", "class": "a"}, {}])
def test_a_record_that_is_none_is_refused(written):
    with pytest.raises(ConfigError):
        restored(written)
