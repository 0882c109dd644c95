"""Envs of tensors for tests."""

import torch

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
