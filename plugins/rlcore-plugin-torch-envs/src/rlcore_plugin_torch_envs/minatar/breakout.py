"""Breakout: a ball that breaks bricks, and a paddle that keeps it from falling."""

from __future__ import annotations

import torch
from rlcore_plugin_device import Random
from torch import Tensor

from rlcore_plugin_torch_envs.minatar.game import LEFT, RIGHT, SIDE, Game, Variables, looked_up, walked


class Breakout(Game):
    """Each brick earns 1. The ball moves along diagonals; the game is over when it falls."""

    channels = 4
    minimal_actions = (0, 1, 3)

    def begin(self, random: Random) -> Variables:
        """Return three rows of bricks, and a ball that falls from one of the sides."""
        right = random.uniform() >= 1 / 2
        x, y = torch.where(right, SIDE - 1, 0), self.full(3)
        return {
            "pos": self.full(4),
            "ball_x": x,
            "ball_y": y,
            # up and left, up and right, down and right, down and left
            "ball_dir": torch.where(right, 3, 2),
            "last_x": x,
            "last_y": y,
            "brick_map": self.empty(SIDE, SIDE) | self._wall(),
            "strike": self.empty(),
        }

    def play(self, state: Variables, action: Tensor, random: Random) -> Variables:
        """Move the paddle, then the ball; what it meets turns it round."""
        pos, bricks = walked(state["pos"], action, LEFT, RIGHT), state["brick_map"]
        last_x, last_y, way = state["ball_x"], state["ball_y"], state["ball_dir"]
        x = last_x + torch.where((way == 1) | (way == 2), 1, -1)
        y = last_y + torch.where(way >= 2, 1, -1)
        way = torch.where((x < 0) | (x >= SIDE), way ^ 1, way)
        above = y < 0
        way = torch.where(above, way ^ 3, way)
        x, y = x.clamp(0, SIDE - 1), y.clamp(min=0)
        on_brick = looked_up(bricks, x, y) & ~above
        breaks = on_brick & ~state["strike"]
        bricks = bricks & ~(breaks[:, None, None] & self.at(x, y))
        low = (y == SIDE - 1) & ~on_brick
        bricks = bricks | ((low & ~bricks.flatten(1).any(1))[:, None, None] & self._wall())
        straight = low & (last_x == pos)
        edge = low & ~straight & (x == pos)
        way = torch.where(breaks | straight, way ^ 3, torch.where(edge, way ^ 2, way))
        return {
            "pos": pos,
            "ball_x": x,
            "ball_y": torch.where(breaks | straight | edge, last_y, y),
            "ball_dir": way,
            "last_x": last_x,
            "last_y": last_y,
            "brick_map": bricks,
            "strike": on_brick,
            "reward": breaks.float(),
            "terminal": low & ~straight & ~edge,
        }

    def observation(self, state: Variables) -> Tensor:
        """Return paddle, ball, where the ball was, and bricks."""
        paddle = self.at(state["pos"], torch.full_like(state["pos"], SIDE - 1))
        ball = self.at(state["ball_x"], state["ball_y"])
        trail = self.at(state["last_x"], state["last_y"])
        return torch.stack([paddle, ball, trail, state["brick_map"]], -1)

    def _wall(self) -> Tensor:
        return (self._cells >= SIDE) & (self._cells < 4 * SIDE)
