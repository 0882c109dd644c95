"""Freeway: a chicken that is to cross a road of eight lanes."""

from __future__ import annotations

from typing import Final

import torch
from rlcore_plugin_device import Random
from torch import Tensor

from rlcore_plugin_torch_envs.minatar.game import DOWN, SIDE, UP, Game, Variables, walked, whole

_LANES: Final = 8
_COLUMN: Final = 4  # of the chicken
_REST: Final = 3  # steps from one of the chicken's to the next
_STEPS: Final = 2500


class Freeway(Game):
    """Each crossing earns 1, and gives the cars other speeds. A car sends the chicken back to where it began."""

    channels = 7
    minimal_actions = (0, 2, 4)

    def begin(self, random: Random) -> Variables:
        """Return a chicken at the lower side, and cars in a column."""
        speed = _speeds(random)
        return {
            "pos": self.full(SIDE - 1),
            "move_timer": self.full(_REST),
            "terminate_timer": self.full(_STEPS),
            "car_x": self.full(0, _LANES),
            "car_timer": speed.abs(),
            "car_speed": speed,
        }

    def play(self, state: Variables, action: Tensor, random: Random) -> Variables:
        """Move the chicken, then the cars."""
        rested = state["move_timer"] == 0
        pos = torch.where(rested, walked(state["pos"], action, UP, DOWN), state["pos"])
        steps = rested & ((action == UP) | (action == DOWN))
        wait = torch.where(steps, _REST, state["move_timer"])
        across = pos == 0
        pos = torch.where(across, SIDE - 1, pos)
        fresh = _speeds(random)
        speed = torch.where(across[:, None], fresh, state["car_speed"])
        timer = torch.where(across[:, None], fresh.abs(), state["car_timer"])
        moves = timer == 0
        # a car that leaves comes back from the other side
        x = torch.where(moves, (state["car_x"] + speed.sign()) % SIDE, state["car_x"])
        lane = torch.arange(1, _LANES + 1, device=self.device) == pos[:, None]
        hit = (lane & ((state["car_x"] == _COLUMN) | (x == _COLUMN))).any(1)
        left = state["terminate_timer"] - 1
        return {
            "pos": torch.where(hit, SIDE - 1, pos),
            "move_timer": (wait - 1).clamp(min=0),
            "terminate_timer": left,
            "car_x": x,
            "car_timer": torch.where(moves, speed.abs(), timer - 1),
            "car_speed": speed,
            "reward": across.float(),
            "terminal": left < 0,
        }

    def observation(self, state: Variables) -> Tensor:
        """Return chicken, cars, and where cars come from in a channel for each speed."""
        columns, speeds = torch.arange(SIDE, device=self.device), torch.arange(1, 6, device=self.device)
        x, speed = state["car_x"], state["car_speed"]
        cars = (x[..., None] == columns)[..., None]
        trails = ((x - speed.sign()) % SIDE)[..., None] == columns
        trails = trails[..., None] & (speed.abs()[..., None, None] == speeds)
        rows = torch.nn.functional.pad(torch.cat([cars, trails], -1), (0, 0, 0, 0, 1, 1))
        chicken = self.at(torch.full_like(state["pos"], _COLUMN), state["pos"])
        return torch.cat([chicken[..., None], rows], -1)


def _speeds(random: Random) -> Tensor:
    """Return steps of the cars from a cell to the next, with the sign of where they drive."""
    size, direction = random.uniform(0, 1, 2, _LANES).unbind(1)
    return (whole(size, 5) + 1) * torch.where(direction < 1 / 2, -1, 1)
