"""The learners of behaviour cloning and IMPALA take the steps that RLlib's take, from the same weights and batches."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from rlcore import BCConfig, Columns, IMPALAConfig, RLModule, RLModuleSpec

for name in ("ray", "tree", "lz4"):
    pytest.importorskip(name, reason="pip install ray[rllib]")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import ray.rllib.algorithms.bc.bc as bc
    import ray.rllib.algorithms.impala.impala as impala
    from ray.rllib.core.learner.learner import Learner as RLlibLearner
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
    from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch

OBSERVATIONS, ACTIONS = Box(-1, 1, (4,), np.float32), Discrete(2)
LAYERS = {"encoder": "encoder.encoder.net.mlp.0", "actor": "pi.net.mlp.0", "critic": "vf.net.mlp.0"}
WITHOUT_CRITIC = {"encoder": "_encoder.net.mlp.0", "actor": "_pi_head.net.mlp.0"}
LENGTH, FRAGMENTS = 5, 8


class Networks(RLModule):
    """The networks of RLlib's modules; without a critic for behaviour cloning."""

    def setup(self):
        self.encoder, self.actor = torch.nn.Linear(4, 16), torch.nn.Linear(16, 2)
        if self.model_config.get("critic", True):
            self.critic = torch.nn.Linear(16, 1)

    def _forward(self, batch):
        embeddings = torch.tanh(self.encoder(batch[Columns.OBS]))
        return {Columns.ACTION_DIST_INPUTS: self.actor(embeddings), Columns.EMBEDDINGS: embeddings}

    def compute_values(self, batch, embeddings=None):
        return self.critic(embeddings).squeeze(-1)


def batch_of(seed):
    rows, generator = LENGTH * FRAGMENTS, np.random.default_rng(seed)
    mask = np.ones((FRAGMENTS, LENGTH), bool)
    mask[:, -1] = False  # the row of the bootstrap value
    columns = {
        Columns.OBS: generator.normal(size=(rows, 4)).astype(np.float32),
        Columns.ACTIONS: generator.integers(0, 2, rows),
        Columns.ACTION_LOGP: np.log(generator.uniform(0.3, 0.7, rows)).astype(np.float32),
        Columns.REWARDS: generator.normal(size=rows).astype(np.float32),
        Columns.TERMINATEDS: generator.random(rows) < 0.1,
        Columns.LOSS_MASK: mask.ravel(),
    }
    return {name: torch.as_tensor(column) for name, column in columns.items()}


def pair(theirs, ours, has_critic, **settings):
    """Return a learner of RLlib and one of rlcore, with the same weights."""
    spaces = {"observation_space": OBSERVATIONS, "action_space": ACTIONS}
    configs = [kind().environment(**spaces).learners(num_learners=0).training(**settings) for kind in (theirs, ours)]
    configs = [config.env_runners(rollout_fragment_length=LENGTH) for config in configs]
    model = DefaultModelConfig(fcnet_hiddens=[16], fcnet_activation="tanh")
    peer = configs[0].rl_module(model_config=model).build_learner()
    own = configs[1].rl_module(rl_module_spec=RLModuleSpec(Networks, model_config={"critic": has_critic}))
    learner = own.build_learner()
    learner.module["default_policy"].set_state(weights_of(peer, has_critic))
    return peer, learner


def weights_of(peer, has_critic):
    weights = peer.module["default_policy"].state_dict()
    layers = LAYERS if has_critic else WITHOUT_CRITIC
    parts = ("weight", "bias")
    return {f"{name}.{part}": weights[f"{place}.{part}"].clone() for name, place in layers.items() for part in parts}


CASES = {
    "bc": (bc.BCConfig, BCConfig, False, {"lr": 1e-3}),
    "impala": (impala.IMPALAConfig, IMPALAConfig, True, {"gamma": 0.9, "grad_clip": 0.5}),
    "impala, its own limits": (
        impala.IMPALAConfig, IMPALAConfig, True,
        {
            "vtrace_clip_rho_threshold": 0.8, "vtrace_clip_pg_rho_threshold": 0.7, "vf_loss_coeff": 0.3,
            "entropy_coeff": [[0, 0.1], [100, 0.0]], "lr": 1e-3,
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_weights_and_losses_are_equal_after_the_same_updates(case):
    theirs, ours, has_critic, settings = CASES[case]
    peer, learner = pair(theirs, ours, has_critic, **settings)
    for number in range(4):
        batch, timesteps = batch_of(number), {"num_env_steps_sampled_lifetime": 40 * number}
        told = RLlibLearner.update(
            peer, batch=MultiAgentBatch({"default_policy": SampleBatch(batch)}, 40), timesteps=timesteps
        )
        results = learner.update(batch=batch, timesteps=timesteps)["default_policy"]
    for name, weight in weights_of(peer, has_critic).items():
        np.testing.assert_allclose(learner.get_state()["rl_module"]["default_policy"][name], weight, rtol=0, atol=1e-6)
    told = told or peer.metrics.reduce()
    assert results["total_loss"] == pytest.approx(
        float(told["default_policy"]["total_loss"].peek()), rel=1e-4, abs=1e-6
    )
