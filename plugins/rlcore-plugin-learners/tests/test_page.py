"""The learner of RLlib's page of learners, in every place that learners run."""

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from rlcore import AlgorithmConfig, Learner, ModuleID, PPOConfig, SampleBatch, TensorType, TorchLearner, override


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


@pytest.mark.parametrize("num_learners", [0, 1, 2])
def test_it_clones_actions_and_answers_functions_of_the_script(num_learners):
    config = PPOConfig().learners(num_learners=num_learners, learner_class=BCTorchLearner).training(lr=3e-3)
    group = config.build_learner_group(env=gymnasium.make("CartPole-v1"))
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
