"""Files as the other libraries write them, made by hand: without those libraries, and with what they never write."""

import base64
import io
import json
import zipfile

import torch
from torch import nn

POLICY = b"cstable_baselines3.common.policies\nActorCriticPolicy\n."
HIDDEN = 8


def saved(content):
    """Return what `torch.save` writes."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def pickled(data):
    """Return a setting as Stable-Baselines3 writes one that is no JSON."""
    return {":type:": "<class 'object'>", ":serialized:": base64.b64encode(data).decode()}


def policy(observations=4, actions=2):
    """Return the networks of PPO as modules."""
    torch.manual_seed(0)
    net = nn.Module()
    net.mlp_extractor = nn.Module()
    net.mlp_extractor.policy_net = nn.Sequential(nn.Linear(observations, HIDDEN), nn.Tanh())
    net.mlp_extractor.value_net = nn.Sequential(nn.Linear(observations, HIDDEN), nn.Tanh())
    net.action_net = nn.Linear(HIDDEN, actions)
    net.value_net = nn.Linear(HIDDEN, 1)
    return net


def members(**settings):
    """Return the members of a PPO model after one step of its optimizer."""
    net = policy()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, eps=1e-5)
    for parameter in net.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    data = {
        "policy_class": pickled(POLICY),
        "policy_kwargs": {},
        "num_timesteps": 512,
        "_total_timesteps": 512,
        "_episode_num": 3,
        "learning_rate": 1e-3,
        "n_envs": 2,
        "n_steps": 64,
        "batch_size": 32,
        "n_epochs": 2,
        "gamma": 0.98,
        "gae_lambda": 0.9,
        "ent_coef": 0.01,
        "vf_coef": 0.5,
        "max_grad_norm": 0.5,
        "clip_range": 0.2,
        "clip_range_vf": None,
        "normalize_advantage": True,
        "target_kl": None,
        **settings,
    }
    return {
        "data": json.dumps(data).encode(),
        "policy.pth": saved(net.state_dict()),
        "policy.optimizer.pth": saved(optimizer.state_dict()),
        "pytorch_variables.pth": saved({}),
    }


def archive(path, parts, compression=zipfile.ZIP_STORED):
    """Write a zip archive."""
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return path


def actions_of(state, observation):
    """Return the likeliest actions by the networks as they stand there."""
    hidden = torch.tanh(
        nn.functional.linear(
            observation, state["mlp_extractor.policy_net.0.weight"], state["mlp_extractor.policy_net.0.bias"]
        )
    )
    return nn.functional.linear(hidden, state["action_net.weight"], state["action_net.bias"]).argmax(-1)
