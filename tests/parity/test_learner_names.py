"""The snippets of RLlib's page on learners run with their imports changed."""

import time
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from rlcore import (
    COMPONENT_OPTIMIZER,
    COMPONENT_RL_MODULE,
    AlgorithmConfig,
    Learner,
    ModuleID,
    PPOConfig,
    SampleBatch,
    TensorType,
    TorchLearner,
    override,
)

TIMESTEPS = {"num_env_steps_sampled_lifetime": 250}


@pytest.fixture
def env():
    made = gym.make("CartPole-v1")
    yield made
    made.close()


@pytest.fixture
def batch():
    generator = np.random.default_rng(0)
    return {
        SampleBatch.OBS: generator.normal(size=(16, 4)).astype(np.float32),
        SampleBatch.ACTIONS: generator.integers(0, 2, 16),
        SampleBatch.ACTION_LOGP: np.full(16, np.log(0.5), np.float32),
        SampleBatch.ACTION_DIST_INPUTS: np.zeros((16, 2), np.float32),
        SampleBatch.VF_PREDS: np.zeros(16, np.float32),
        SampleBatch.ADVANTAGES: generator.normal(size=16).astype(np.float32),
        SampleBatch.VALUE_TARGETS: generator.normal(size=16).astype(np.float32),
    }


def config_of_the_page(num_learners=0):
    return (
        PPOConfig()
        .learners(num_learners=num_learners, num_gpus_per_learner=0, num_cpus_per_learner=1)
        .training(
            use_kl_loss=True,
            kl_coeff=0.01,
            kl_target=0.05,
            clip_param=0.2,
            vf_clip_param=0.2,
            entropy_coeff=0.05,
            vf_loss_coeff=0.5,
        )
    )


@pytest.fixture
def learner(env):
    built = config_of_the_page().build_learner(env=env)
    built.build()
    return built


@pytest.fixture
def learner_group(env):
    group = config_of_the_page().build_learner_group(env=env)
    yield group
    group.shutdown()


def test_updates(learner, learner_group, batch):
    result = learner.update(batch=batch, timesteps=TIMESTEPS)
    assert {"total_loss", "policy_loss", "vf_loss", "entropy", "mean_kl_loss"} <= set(result["default_policy"])
    results = learner_group.update(batch=batch, timesteps=TIMESTEPS)
    assert isinstance(results, list), results
    assert isinstance(results[0], dict), results
    assert results == [result]
    assert learner_group.is_local
    assert len(learner_group) == 0


def test_asynchronous_updates_take_other_processes(learner_group, batch):
    with pytest.raises(ValueError, match="num_learners of 1 or more"):
        learner_group.update(batch=batch, async_update=True, timesteps=TIMESTEPS)


def test_asynchronous_updates(env, batch):
    learner_group = config_of_the_page(num_learners=1).build_learner_group(env=env)
    _ = learner_group.update(batch=batch, async_update=True, timesteps=TIMESTEPS)
    # Artificially wait for async request to be done to get the results
    learner_group.foreach_learner(lambda learner: time.sleep(0.1))
    results = learner_group.update(batch=batch, async_update=True, timesteps=TIMESTEPS)
    assert isinstance(results, list), results
    assert isinstance(results[0], dict), results
    learner_group.shutdown()


def test_states_and_weights(learner, learner_group, batch):
    learner.update(batch=batch)
    learner_group.set_state({"learner": learner.get_state()})
    state = learner_group.get_state()
    learner_group.update(batch=batch)
    learner_group.set_state(state)
    weights = learner_group.get_weights()
    learner_group.update(batch=batch)
    learner_group.set_weights(weights)
    for name, value in learner.get_state()[COMPONENT_RL_MODULE]["default_policy"].items():
        np.testing.assert_array_equal(learner_group.get_weights()["default_policy"][name], value)

    state = learner.get_state()
    assert {COMPONENT_RL_MODULE, COMPONENT_OPTIMIZER} <= set(state)
    learner.set_state(state)
    rl_module_only_state = learner.get_state(components=COMPONENT_RL_MODULE)
    assert set(rl_module_only_state) == {COMPONENT_RL_MODULE}
    learner.update(batch=batch)
    learner.module.set_state(rl_module_only_state)
    for name, value in learner.module.get_state()["default_policy"].items():
        np.testing.assert_array_equal(rl_module_only_state[COMPONENT_RL_MODULE]["default_policy"][name], value)


def test_checkpoints(learner, learner_group, batch, tmp_path):
    learner.update(batch=batch)
    learner.save_to_path(tmp_path)
    learner_group.restore_from_path(tmp_path)
    learner_group.save_to_path(tmp_path)
    learner.restore_from_path(tmp_path)
    assert learner_group.update(batch=batch) == [learner.update(batch=batch)]


class BCTorchLearner(TorchLearner):
    @override(Learner)
    def compute_loss_for_module(
        self,
        *,
        module_id: ModuleID,
        config: AlgorithmConfig = None,
        batch: dict[str, Any],
        fwd_out: dict[str, TensorType],
    ) -> TensorType:
        action_dist_inputs = fwd_out[SampleBatch.ACTION_DIST_INPUTS]
        action_dist_class = self._module[module_id].get_train_action_dist_cls()
        action_dist = action_dist_class.from_logits(action_dist_inputs)
        return -torch.mean(action_dist.logp(batch[SampleBatch.ACTIONS]))


@pytest.mark.parametrize("id", ["CartPole-v1", "Pendulum-v1"])
def test_behaviour_is_cloned(id):
    env = gym.make(id)
    env.observation_space.seed(0)
    obs = np.stack([env.observation_space.sample() for _ in range(64)]).clip(-1, 1)
    actions = (obs[:, 0] > 0).astype(np.int64) if id == "CartPole-v1" else obs[:, :1].copy()
    learner = AlgorithmConfig(learner_class=BCTorchLearner, lr=0.01).build_learner(env=env)
    learner.build()
    losses = [
        learner.update({SampleBatch.OBS: obs, SampleBatch.ACTIONS: actions})["default_policy"]["total_loss"]
        for _ in range(60)
    ]
    assert losses[-1] < losses[0] - 0.4
    env.close()


@pytest.mark.parametrize("num_learners", [0, 1, 2])
def test_it_clones_actions_and_answers_functions_of_the_script(num_learners):
    config = PPOConfig().learners(num_learners=num_learners, learner_class=BCTorchLearner).training(lr=3e-3)
    group = config.build_learner_group(env=gym.make("CartPole-v1"))
    observations = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
    columns = {SampleBatch.OBS: observations, SampleBatch.ACTIONS: (observations[:, 0] > 0).astype(np.int64)}
    batch, timesteps = SampleBatch(columns).as_multi_agent(), {"num_env_steps_sampled_lifetime": 250}
    losses = [group.update(batch=batch, timesteps=timesteps)[0]["default_policy"]["total_loss"] for _ in range(20)]
    assert losses[-1] < losses[0] / 2
    more = 3
    told = group.foreach_learner(
        lambda learner, less: (type(learner).__name__, learner.weights_seq_no + more - less), less=1
    )
    ids = list(range(num_learners)) or [None]
    assert [(one.actor_id, one.ok, one.get()) for one in told] == [
        (number, True, ("BCTorchLearner", 22)) for number in ids
    ]
    assert len(list(told.ignore_errors())) == len(list(told.ignore_ray_errors())) == len(told) == len(ids)
    group.shutdown()


def test_a_method_that_replaces_nothing_is_told():
    with pytest.raises(NameError, match="Learner has no compute_los"):

        class Wrong(TorchLearner):
            @override(Learner)
            def compute_los(self):
                """Never called."""
