"""PPO's learner takes the steps that RLlib's takes, from the same weights and batches."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from rlcore import Columns, PPOConfig, RLModule, RLModuleSpec, SingleAgentEpisode

for name in ("ray", "tree", "lz4"):
    pytest.importorskip(name, reason="pip install ray[rllib]")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import ray.rllib.algorithms.ppo.ppo as rllib
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode as TheirEpisode
    from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch

OBSERVATIONS, ACTIONS = Box(-1, 1, (4,), np.float32), Discrete(2)
LAYERS = {"encoder": "encoder.encoder.net.mlp.0", "actor": "pi.net.mlp.0", "critic": "vf.net.mlp.0"}
SETTINGS = {"lr": 1e-3, "kl_target": 0.05, "vf_loss_coeff": 0.5, "entropy_coeff": [[0, 0.1], [100, 0.0]]}
# what the last minibatch says there, and the mean of all here
OF_MINIBATCHES = {"policy_loss", "vf_loss", "entropy", "total_loss"}
NOT_HERE = {"vf_explained_var", "vf_loss_unclipped", "num_trainable_parameters"}


class Shared(RLModule):
    """The networks of RLlib's PPO."""

    def setup(self):
        self.encoder, self.actor, self.critic = (torch.nn.Linear(*sizes) for sizes in ((4, 16), (16, 2), (16, 1)))

    def _forward(self, batch):
        embeddings = torch.tanh(self.encoder(batch[Columns.OBS]))
        return {Columns.ACTION_DIST_INPUTS: self.actor(embeddings), Columns.EMBEDDINGS: embeddings}

    def compute_values(self, batch, embeddings=None):
        return self.critic(self._forward(batch)[Columns.EMBEDDINGS] if embeddings is None else embeddings).squeeze(-1)


def batch_of(seed, rows=64, masks=False):
    generator = np.random.default_rng(seed)
    columns = {
        Columns.OBS: generator.normal(size=(rows, 4)),
        Columns.ACTION_DIST_INPUTS: generator.normal(size=(rows, 2)),
        Columns.ACTION_LOGP: np.log(generator.uniform(0.3, 0.7, rows)),
        Columns.ADVANTAGES: generator.normal(size=rows),
        Columns.VALUE_TARGETS: 4 * generator.normal(size=rows),
    }
    return {
        **{name: column.astype(np.float32) for name, column in columns.items()},
        Columns.ACTIONS: generator.integers(0, 2, rows),
        **({Columns.LOSS_MASK: generator.random(rows) < 0.8} if masks else {}),
    }


def pair(**settings):
    """Return a learner of RLlib and one of rlcore, with the same weights."""
    config = rllib.PPOConfig().environment(observation_space=OBSERVATIONS, action_space=ACTIONS)
    model = DefaultModelConfig(fcnet_hiddens=[16], fcnet_activation="tanh")
    theirs = config.training(**settings).rl_module(model_config=model).build_learner()
    ours = PPOConfig().environment(observation_space=OBSERVATIONS, action_space=ACTIONS).training(**settings)
    ours = ours.rl_module(rl_module_spec=RLModuleSpec(Shared)).build_learner()
    ours.module["default_policy"].set_state(weights_of(theirs))
    return theirs, ours


def weights_of(theirs):
    weights = theirs.module["default_policy"].state_dict()
    parts = ("weight", "bias")
    return {f"{name}.{part}": weights[f"{place}.{part}"].clone() for name, place in LAYERS.items() for part in parts}


@pytest.mark.parametrize("keys", [{}, {"minibatch_size": 32, "num_epochs": 2}], ids=str)
@pytest.mark.parametrize(("use_kl_loss", "masks"), [(True, False), (False, False), (True, True)])
def test_weights_are_equal_after_the_same_updates(use_kl_loss, masks, keys):
    theirs, ours = pair(**SETTINGS, use_kl_loss=use_kl_loss)
    for number in range(4):
        batch, timesteps = batch_of(number, masks=masks), {"num_env_steps_sampled_lifetime": 40 * number}
        tensors = SampleBatch({name: torch.as_tensor(column) for name, column in batch.items()})
        told = theirs.update(
            batch=MultiAgentBatch({"default_policy": tensors}, env_steps=64), timesteps=timesteps, **keys
        )
        results = ours.update(batch=batch, timesteps=timesteps, **keys)
    for name, weight in weights_of(theirs).items():
        np.testing.assert_allclose(ours.get_state()["rl_module"]["default_policy"][name], weight, rtol=0, atol=1e-6)
    told = {name: stat.peek() for name, stat in told["default_policy"].items()}
    assert set(told) - set(results["default_policy"]) <= NOT_HERE | (set() if use_kl_loss else {"mean_kl_loss"})
    for name in set(told) & set(results["default_policy"]):
        if (name not in OF_MINIBATCHES or not keys) and "lifetime" not in name:
            assert results["default_policy"][name] == pytest.approx(float(told[name]), rel=1e-4, abs=1e-6), name


def episodes_of(kind, seed):
    """Return episodes of an end, of a limit of steps and of neither, with what the policy said of their actions."""
    generator = np.random.default_rng(seed)
    episodes = []
    for steps, end in ((7, {"terminated": True}), (5, {}), (9, {"truncated": True})):
        episode = kind(
            observation_space=OBSERVATIONS,
            observations=[generator.normal(size=4).astype(np.float32) for _ in range(steps + 1)],
            action_space=ACTIONS,
            actions=[int(action) for action in generator.integers(0, 2, steps)],
            rewards=[float(reward) for reward in generator.normal(size=steps)],
            extra_model_outputs={
                Columns.ACTION_DIST_INPUTS: list(generator.normal(size=(steps, 2)).astype(np.float32)),
                Columns.ACTION_LOGP: list(np.log(generator.uniform(0.3, 0.7, steps)).astype(np.float32)),
            },
            len_lookback_buffer=0,
            **end,
        )
        episodes.append(episode.to_numpy())
    return episodes


@pytest.mark.parametrize("own", [True, False], ids=["rlcore's", "RLlib's"])
def test_weights_are_equal_after_updates_on_the_same_episodes(own):
    theirs, ours = pair(lr=1e-3, gamma=0.9, lambda_=0.8)
    for number in range(4):
        timesteps = {"num_env_steps_sampled_lifetime": 21 * number}
        theirs.update(episodes=episodes_of(TheirEpisode, number), timesteps=timesteps)
        ours.update(episodes=episodes_of(SingleAgentEpisode if own else TheirEpisode, number), timesteps=timesteps)
    for name, weight in weights_of(theirs).items():
        np.testing.assert_allclose(ours.get_state()["rl_module"]["default_policy"][name], weight, rtol=0, atol=1e-6)
