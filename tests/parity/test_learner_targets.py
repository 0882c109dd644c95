"""The learners with target networks, of DQN, SAC and APPO, take the steps that RLlib's take."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from rlcore import (
    APPOConfig,
    Columns,
    DefaultDQNTorchRLModule,
    DefaultSACTorchRLModule,
    DQNConfig,
    RLModule,
    RLModuleSpec,
    SACConfig,
    TargetNetworkAPI,
)

for name in ("ray", "tree", "lz4"):
    pytest.importorskip(name, reason="pip install ray[rllib]")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import ray.rllib.algorithms.appo.appo as appo
    import ray.rllib.algorithms.dqn.dqn as dqn
    import ray.rllib.algorithms.sac.sac as sac
    from ray.rllib.core.learner.learner import Learner as RLlibLearner
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
    from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch

OBSERVATIONS, CHOICES, BOX = Box(-1, 1, (4,), np.float32), Discrete(3), Box(-1, 1, (2,), np.float32)
ROWS, LENGTH = 40, 5
# of a setting that is off, and a count of weights
NOT_HERE = {"mean_kl_loss", "num_trainable_parameters"}
# counts that RLlib adds up in the Algorithm
OF_ONE_UPDATE = ("lifetime", "num_target_updates")
SHAPE = {"fcnet_hiddens": [16], "fcnet_activation": "tanh", "head_fcnet_hiddens": []}


def linear(*sizes):
    return torch.nn.Linear(*sizes)


class QNetworks(DefaultDQNTorchRLModule):
    """The networks of RLlib's DQN; what is made of their outputs is rlcore's."""

    def setup(self):
        settings = self.model_config
        self.uses_double_q, self.uses_dueling = settings["double_q"], settings["dueling"]
        self.num_atoms = settings["num_atoms"]
        self.encoder, self.af = linear(4, 16), linear(16, 3 * self.num_atoms)
        if self.uses_dueling:
            self.vf = linear(16, 1)
        self.atoms = torch.linspace(settings["v_min"], settings["v_max"], self.num_atoms)

    def parts(self):
        return ["encoder", "af"] + (["vf"] if self.uses_dueling else [])

    def make_target_networks(self):
        for name in self.parts():
            target = linear(*reversed(getattr(self, name).weight.shape))
            target.load_state_dict(getattr(self, name).state_dict())
            setattr(self, f"_target_{name}", target.requires_grad_(False))

    def get_target_network_pairs(self):
        return [(getattr(self, name), getattr(self, f"_target_{name}")) for name in self.parts()]

    def compute_q_values(self, batch):
        return self.values_of(batch["obs"], "")

    def forward_target(self, batch):
        return self.values_of(batch["obs"], "_target_")

    def values_of(self, observation, prefix):
        hidden = torch.tanh(getattr(self, f"{prefix}encoder")(observation))
        outputs = getattr(self, f"{prefix}af")(hidden)
        if self.num_atoms == 1:
            if self.uses_dueling:
                outputs = outputs - outputs.mean(-1, keepdim=True) + getattr(self, f"{prefix}vf")(hidden)
            return {"qf_preds": outputs}
        logits = outputs.view(-1, 3, self.num_atoms)
        if self.uses_dueling:  # RLlib centres over the atoms
            logits = logits - logits.mean(-1, keepdim=True) + getattr(self, f"{prefix}vf")(hidden).unsqueeze(-1)
        probs = logits.softmax(-1)
        return {"atoms": self.atoms, "qf_logits": logits, "qf_probs": probs, "qf_preds": probs @ self.atoms}


class Streams(torch.nn.Module):
    """The encoder of RLlib's critics: of the observation and of the action apart, and of both."""

    def __init__(self):
        super().__init__()
        self.observation, self.action, self.both = linear(4, 16), linear(2, 16), linear(32, 16)

    def forward(self, inputs):
        observation, action = inputs[:, :4], inputs[:, 4:]
        parts = [torch.tanh(self.action(action)), torch.tanh(self.observation(observation))]
        return torch.tanh(self.both(torch.cat(parts, -1)))


class Critics(DefaultSACTorchRLModule):
    """The networks of RLlib's SAC; the rest is rlcore's."""

    def setup(self):
        self.begin()
        self.pi_encoder = torch.nn.Sequential(linear(4, 16), torch.nn.Tanh())
        self.pi = linear(16, 3 if self.is_discrete else 4)
        for name in ("qf", "qf_twin") if self.twin_q else ("qf",):
            encoder = torch.nn.Sequential(linear(4, 16), torch.nn.Tanh()) if self.is_discrete else Streams()
            setattr(self, f"{name}_encoder", encoder)
            setattr(self, name, linear(16, 3 if self.is_discrete else 1))


class OldPolicy(RLModule, TargetNetworkAPI):
    """The networks of RLlib's APPO."""

    def setup(self):
        self.encoder, self.actor, self.critic = linear(4, 16), linear(16, 3), linear(16, 1)

    def make_target_networks(self):
        self.old_encoder, self.old_actor = linear(4, 16), linear(16, 3)
        for network, target in self.get_target_network_pairs():
            target.load_state_dict(network.state_dict())
            target.requires_grad_(False)

    def get_target_network_pairs(self):
        return [(self.encoder, self.old_encoder), (self.actor, self.old_actor)]

    def forward_target(self, batch):
        return {"target_network_action_dist_inputs": self.old_actor(torch.tanh(self.old_encoder(batch["obs"])))}

    def _forward(self, batch):
        embeddings = torch.tanh(self.encoder(batch["obs"]))
        return {"action_dist_inputs": self.actor(embeddings), "embeddings": embeddings}

    def compute_values(self, batch, embeddings=None):
        return self.critic(embeddings).squeeze(-1)


def q_layers(settings):
    parts = {"encoder": "encoder.net.mlp.0", "af": "af.net.mlp.0", "vf": "vf.net.mlp.0"}
    if not settings.get("dueling", True):
        del parts["vf"]
    return parts | {f"_target_{name}": f"_target_{place}" for name, place in parts.items()}


def critic_layers(settings):
    layers = {"pi_encoder.0": "pi_encoder.net.mlp.0", "pi": "pi.net.mlp.0"}
    for name in ("qf", "qf_twin") if settings.get("twin_q", True) else ("qf",):
        for prefix in ("", "target_"):
            layers[f"{prefix}{name}"] = f"{prefix}{name}.net.mlp.0"
            place = f"{prefix}{name}_encoder"
            if settings.get("discrete"):
                layers[f"{place}.0"] = f"{place}.net.mlp.0"
            else:
                layers[f"{place}.observation"] = f"{place}.base_encoders.obs.net.mlp.0"
                layers[f"{place}.action"] = f"{place}.base_encoders.actions.net.mlp.0"
                layers[f"{place}.both"] = f"{place}.output_layer"
    return layers


def policy_layers(_):
    return {
        "encoder": "encoder.encoder.net.mlp.0", "actor": "pi.net.mlp.0", "critic": "vf.net.mlp.0",
        "old_encoder": "_old_encoder.encoder.net.mlp.0", "old_actor": "_old_pi.net.mlp.0",
    }  # fmt: skip


def batch_of(seed, discrete):
    generator = np.random.default_rng(seed)
    mask = np.ones((ROWS // LENGTH, LENGTH), bool)
    mask[:, -1] = False  # the row of the bootstrap value
    columns = {
        Columns.OBS: generator.normal(size=(ROWS, 4)),
        Columns.NEXT_OBS: generator.normal(size=(ROWS, 4)),
        Columns.REWARDS: 4 * generator.normal(size=ROWS),
        Columns.ACTION_LOGP: np.log(generator.uniform(0.2, 0.5, ROWS)),
        "weights": generator.uniform(0.5, 1, ROWS),
        "n_step": generator.integers(1, 4, ROWS),
    }
    actions = generator.integers(0, 3, ROWS) if discrete else generator.uniform(-0.9, 0.9, (ROWS, 2)).astype(np.float32)
    columns = {name: column.astype(np.float32) for name, column in columns.items()}
    columns |= {Columns.ACTIONS: actions, Columns.TERMINATEDS: generator.random(ROWS) < 0.1}
    return {name: torch.as_tensor(column) for name, column in columns.items()}, torch.as_tensor(mask.ravel())


KINDS = {
    "dqn": (dqn.DQNConfig, DQNConfig, QNetworks, q_layers),
    "sac": (sac.SACConfig, SACConfig, Critics, critic_layers),
    "appo": (appo.APPOConfig, APPOConfig, OldPolicy, policy_layers),
}
CASES = {
    "dqn": ("dqn", {}),
    "dqn, plain": ("dqn", {"double_q": False, "dueling": False, "td_error_loss_fn": "mse", "lr": 1e-3, "gamma": 0.9}),
    "dqn, soft": ("dqn", {"tau": 0.1, "target_network_update_freq": 1, "grad_clip": 0.5}),
    "dqn, distributions": ("dqn", {"num_atoms": 11, "v_min": -3.0, "v_max": 5.0, "dueling": False}),
    "dqn, distributions of two streams": (
        "dqn", {"num_atoms": 11, "double_q": False, "target_network_update_freq": 40},
    ),
    "sac": ("sac", {}),
    "sac, its own settings": (
        "sac",
        {
            "actor_lr": [[0, 1e-3], [100, 1e-4]], "critic_lr": 2e-3, "alpha_lr": 1e-2, "initial_alpha": 0.3,
            "target_entropy": -0.5, "tau": 0.2, "grad_clip": 0.3, "target_network_update_freq": 60,
        },
    ),
    "sac, one critic": ("sac", {"twin_q": False, "critic_lr": 1e-3}),
    "sac, discrete": ("sac", {"discrete": True, "actor_lr": 1e-3}),
    "appo": ("appo", {}),
    "appo, its own settings": (
        "appo",
        {
            "use_kl_loss": True, "kl_coeff": 0.5, "kl_target": 1e-4, "clip_param": 0.1, "tau": 0.5, "lr": 1e-2,
            "target_network_update_freq": 0.001, "entropy_coeff": [[0, 0.1], [100, 0.0]], "grad_clip": 0.2,
            "vtrace_clip_rho_threshold": 0.8,
        },
    ),
}  # fmt: skip


def pair(kind, settings):
    """Return a learner of RLlib and one of rlcore with the same weights, and the names of the layers of both."""
    theirs, ours, module, layers = KINDS[kind]
    discrete = kind != "sac" or settings.get("discrete", False)
    spaces = {"observation_space": OBSERVATIONS, "action_space": CHOICES if discrete else BOX}
    told = {name: value for name, value in settings.items() if name != "discrete"}
    configs = [one().environment(**spaces).learners(num_learners=0).training(**told) for one in (theirs, ours)]
    if kind == "appo":
        configs = [config.env_runners(rollout_fragment_length=LENGTH) for config in configs]
    model = DefaultModelConfig(**SHAPE, **({} if discrete else {"fusionnet_hiddens": []}))
    peer = configs[0].rl_module(model_config=model).build_learner()
    peer._module_spec = configs[0].get_multi_rl_module_spec()  # of which RLlib's groups tell their learners
    learner = configs[1].rl_module(rl_module_spec=RLModuleSpec(module)).build_learner()
    places = layers(settings)
    learner.module["default_policy"].set_state(weights_of(peer, places))
    return peer, learner, places


def weights_of(peer, layers):
    weights = peer.module["default_policy"].state_dict()
    parts = ("weight", "bias")
    return {f"{name}.{part}": weights[f"{place}.{part}"].clone() for name, place in layers.items() for part in parts}


@pytest.mark.parametrize("case", CASES)
def test_weights_and_results_are_equal_after_the_same_updates(case):
    kind, settings = CASES[case]
    peer, learner, layers = pair(kind, settings)
    begun = weights_of(peer, layers)
    for number in range(1, 5):
        columns, mask = batch_of(number, kind != "sac" or settings.get("discrete", False))
        if kind == "appo":
            columns[Columns.LOSS_MASK] = mask
        clocks = {"num_env_steps_sampled_lifetime": 260 * number, "num_env_steps_trained_lifetime": 40 * number}
        torch.manual_seed(number)
        learner.generator.manual_seed(number)
        batch = MultiAgentBatch({"default_policy": SampleBatch(columns)}, ROWS)
        told = RLlibLearner.update(peer, batch=batch, timesteps=clocks)
        columns.pop("seq_lens", None)
        results = learner.update(batch=columns, timesteps=clocks)["default_policy"]
    told = {name: stat.peek() for name, stat in told["default_policy"].items()}
    found = learner.get_state()["rl_module"]["default_policy"]
    for name, weight in weights_of(peer, layers).items():
        if "vf" in name and settings.get("num_atoms", 1) > 1:
            continue  # adds the same to all logits, so that its gradient is what rounding leaves
        np.testing.assert_allclose(found[name], weight, rtol=0, atol=1e-6, err_msg=name)
    assert any(not np.array_equal(found[name], weight) for name, weight in begun.items())
    assert set(told) - set(results) <= NOT_HERE
    for name in set(told) & set(results):
        if not any(part in name for part in OF_ONE_UPDATE):
            value = np.concatenate([np.atleast_1d(one) for one in told[name]]) if name == "td_error" else told[name]
            np.testing.assert_allclose(results[name], np.asarray(value, float), rtol=1e-4, atol=2e-6, err_msg=name)
