"""Envs of tensors for tests."""

import gymnasium
import torch
from pydantic import Field
from rlcore_plugin_device import FunctionalEnv, TensorEnv, TensorStep

from rlcore import EnvSpec

from .reach import Reach


class Noisy(Reach):
    """The wind blows, and one direction is wrong in every other episode."""

    def initial(self, random):
        return {"position": random.uniform(-1, 1, 2), "sign": 1 - 2 * random.integers(2)}

    def transition(self, state, action, random):
        moved = state["position"] + 0.1 * action * state["sign"][:, None] + 0.05 * random.normal(2)
        return {"position": moved.clamp(-2, 2), "sign": state["sign"]}


class NotFinite(Reach):
    """Its reward is not finite near the middle."""

    def reward(self, state, action, next_state):
        near = next_state["position"].norm(dim=-1) < 0.9
        return torch.where(near, float("nan"), 0.0)


class NotFinitelySeen(Reach):
    """What it observes is not finite near the middle."""

    def observation(self, state):
        near = state["position"].norm(dim=-1, keepdim=True) < 0.9
        return torch.where(near, float("inf"), state["position"])


class Counter(TensorEnv):
    """Counts its steps; every third one ends an episode. A simulator that steps by itself, in tensors of its own.

    Its steps are views of one state, which the next step overwrites, and so are the observations of its reset.
    """

    Config = FunctionalEnv.Config

    def __init__(self, config, context):
        self.device, self.num_envs = context.device, config.num_envs
        space = gymnasium.spaces.Box(-float("inf"), float("inf"), (2,))
        self.spec = EnvSpec("counter", space, gymnasium.spaces.Discrete(2), config.num_envs)
        self.state = torch.zeros(self.num_envs, 5, device=self.device)
        self.last = torch.zeros(self.num_envs, 2, device=self.device)
        self.over = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        self.never = torch.zeros_like(self.over)

    def reset_tensors(self, seed=None):
        self.state.zero_()
        self.state[:, 0] = torch.arange(self.num_envs) + (seed or 0) % 7
        return self.state[:, :2]

    def step_tensors(self, action):
        self.state[:, 0] += 1
        self.state[:, 1] = action
        self.state[:, 2] = self.state[:, 0].remainder(5) + action
        self.last.copy_(self.state[:, :2])
        torch.eq(self.state[:, 0].remainder(3), 0, out=self.over)
        self.state[:, 1].masked_fill_(self.over, 0)
        return TensorStep(self.state[:, :2], self.state[:, 2], self.over, self.never, self.last)

    def state_dict(self):
        return {"state": self.state}

    def load_state_dict(self, state):
        self.state.copy_(state["state"])


class Shown(Reach):
    """The place of the point as a grey picture."""

    render_fps = 10.0

    class Config(Reach.Config):
        render_mode: str | None = Field(None, description="rgb_array: can be rendered")

    def pictures(self, state):
        grey = (state["position"][:, 0] * 63 + 127).byte()
        return grey[:, None, None, None].expand(-1, 4, 6, 3).numpy()


class Blank(Shown):
    pictures = Reach.pictures
