"""Configs of algorithms besides PPO: what they learn, and what they refuse."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from rlcore import BCConfig, IMPALAConfig, IMPALATorchLearner, PPOConfig
from rlcore.errors import ConfigError

OBSERVATIONS, ACTIONS = Box(-1, 1, (3,), np.float32), Discrete(2)


def rows(count=20, seed=0):
    generator = np.random.default_rng(seed)
    observations = generator.normal(size=(count, 3)).astype(np.float32)
    actions = (observations[:, 0] > 0).astype(np.int64)
    return {
        "obs": observations,
        "actions": actions,
        "action_logp": np.full(count, np.log(0.5), np.float32),
        "rewards": actions.astype(np.float32),
        "terminateds": np.arange(count) % 7 == 6,
        "loss_mask": np.arange(count) % 5 < 4,
        "advantages": generator.normal(size=count).astype(np.float32),
        "value_targets": generator.normal(size=count).astype(np.float32),
    }


def learner_of(config, **settings):
    config = config.environment(observation_space=OBSERVATIONS, action_space=ACTIONS).learners(num_learners=0)
    return config.rl_module(model_config={"hidden": [8]}).training(**settings).build_learner()


def test_behaviour_cloning_makes_actions_likelier():
    learner = learner_of(BCConfig(), lr=1e-2)
    losses = [learner.update(rows())["default_policy"]["policy_loss"] for _ in range(100)]
    assert losses[-1] < losses[0] / 2


def test_impala_makes_rewarded_actions_likelier_and_its_state_comes_back(tmp_path):
    learner = learner_of(
        IMPALAConfig().env_runners(rollout_fragment_length=5), entropy_coeff=[[0, 0.1], [100, 0]], lr=1e-2
    )
    assert (type(learner), learner.config.rollout_fragment_length) == (IMPALATorchLearner, 5)
    before = chance(learner)
    for number in range(60):
        results = learner.update(rows(), timesteps={"num_env_steps_sampled_lifetime": number})["default_policy"]
    assert results["curr_entropy_coeff"] == pytest.approx(0.041)
    assert chance(learner) > before + 0.1
    learner.save_to_path(tmp_path)
    again = IMPALATorchLearner.from_checkpoint(tmp_path)
    assert float(again.curr_entropy_coeffs_per_module["default_policy"]) == pytest.approx(0.041)
    told = [one.update(rows(seed=1))["default_policy"]["total_loss"] for one in (learner, again)]
    assert told[0] == told[1]


def chance(learner):
    """Return the mean probability of the action 1."""
    module = learner.module["default_policy"]
    return float(
        module.forward_inference({"obs": torch.as_tensor(rows()["obs"])})["action_dist_inputs"].softmax(-1)[:, 1].mean()
    )


def test_fragments_stay_whole():
    learner = learner_of(IMPALAConfig().env_runners(rollout_fragment_length=5))
    with pytest.raises(ConfigError, match="19 rows are no whole fragments of rollout_fragment_length 5"):
        learner.update(rows(19))
    with pytest.raises(ConfigError, match="takes fragments apart"):
        learner.update(rows(), num_epochs=2, shuffle_batch_per_epoch=True)
    with pytest.raises(ConfigError, match="minibatch_size is 7, no multiple of rollout_fragment_length 50"):
        IMPALAConfig().training(minibatch_size=7)
    with pytest.raises(ConfigError, match="rollout_fragment_length is 'auto'"):
        IMPALAConfig().env_runners(rollout_fragment_length="auto").validate()


@pytest.mark.parametrize("config", [PPOConfig, BCConfig], ids=lambda kind: kind.__name__)
def test_rows_that_are_masked_count_for_nothing(config):
    batch = rows()
    kept = np.arange(20) % 5 < 4
    spoilt = {name: (column.T * kept).T.astype(column.dtype) for name, column in batch.items()}
    batches = [batch, spoilt, {**spoilt, "loss_mask": np.ones(20, bool)}]
    losses = [learner_of(config()).update(one)["default_policy"]["total_loss"] for one in batches]
    assert losses[0] == pytest.approx(losses[1])
    assert losses[0] != pytest.approx(losses[2])
