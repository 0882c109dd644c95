"""Asterix: gold and enemies come from both sides; gold is to be taken, enemies are to be avoided."""

from __future__ import annotations

from typing import Final

import torch
from rlcore_plugin_device import Random
from torch import Tensor

from rlcore_plugin_torch_envs.minatar.game import (
    DOWN,
    LEFT,
    RIGHT,
    SIDE,
    UP,
    Game,
    Variables,
    ahead,
    inside,
    walked,
)

_ROWS: Final = 8  # each has room for one thing
_RAMP: Final = 100  # steps between two rises of the difficulty


class Asterix(Game):
    """The player moves in all directions. Gold earns 1, an enemy ends the game; both become faster and more."""

    channels = 4
    minimal_actions = (0, 1, 2, 3, 4)

    def begin(self, random: Random) -> Variables:
        """Return a player in the middle of an empty field."""
        return {
            "player_x": self.full(5),
            "player_y": self.full(5),
            "x": self.full(0, _ROWS),
            "right": self.empty(_ROWS),
            "gold": self.empty(_ROWS),
            "present": self.empty(_ROWS),
            "spawn_speed": self.full(10),
            "spawn_timer": self.full(10),
            "move_speed": self.full(5),
            "move_timer": self.full(5),
            "ramp_timer": self.full(_RAMP),
            "ramp_index": self.full(0),
        }

    def play(self, state: Variables, action: Tensor, random: Random) -> Variables:
        """Let a thing come, move the player, then the things."""
        x, right, gold, present = _spawned(state, random.uniform(0, 1, 3))
        player_x = walked(state["player_x"], action, LEFT, RIGHT)
        player_y = walked(state["player_y"], action, UP, DOWN, 1, 8)
        beside = _rows(x) == player_y[:, None]
        touched = present & beside & (x == player_x[:, None])
        present = present & ~(touched & gold)
        moves = state["move_timer"] == 0
        x = torch.where(moves[:, None], x + ahead(right), x)
        present = present & inside(x)
        touched_then = present & beside & (x == player_x[:, None]) & moves[:, None]
        return {
            "player_x": player_x,
            "player_y": player_y,
            "x": x,
            "right": right,
            "gold": gold,
            "present": present & ~(touched_then & gold),
            "spawn_timer": torch.where(state["spawn_timer"] == 0, state["spawn_speed"], state["spawn_timer"]) - 1,
            "move_timer": torch.where(moves, state["move_speed"], state["move_timer"]) - 1,
            "reward": ((touched & gold).sum(1) + (touched_then & gold).sum(1)).float(),
            "terminal": ((touched | touched_then) & ~gold).any(1),
            **_ramped(state),
        }

    def observation(self, state: Variables) -> Tensor:
        """Return player, enemies, where things come from, and gold."""
        columns = torch.arange(SIDE, device=self.device)
        present, gold = state["present"][..., None], state["gold"][..., None]
        things = present & (state["x"][..., None] == columns)
        trails = present & ((state["x"] - ahead(state["right"]))[..., None] == columns)
        rows = torch.nn.functional.pad(torch.stack([things & ~gold, trails, things & gold], -1), (0, 0, 0, 0, 1, 1))
        return torch.cat([self.at(state["player_x"], state["player_y"])[..., None], rows], -1)


def _rows(x: Tensor) -> Tensor:
    return torch.arange(1, _ROWS + 1, device=x.device)


def _spawned(state: Variables, numbers: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the things, with a new one in one of the empty rows where it is time."""
    from_left, is_gold, which = numbers.unbind(1)
    empty = ~state["present"]
    order = empty.cumsum(1) - 1  # of the empty rows
    chosen = (state["spawn_timer"] == 0)[:, None] & empty & (order == (which * empty.sum(1)).long()[:, None])
    right = from_left < 1 / 2
    return (
        torch.where(chosen, torch.where(right, 0, SIDE - 1)[:, None], state["x"]),
        torch.where(chosen, right[:, None], state["right"]),
        torch.where(chosen, (is_gold < 1 / 3)[:, None], state["gold"]),
        state["present"] | chosen,
    )


def _ramped(state: Variables) -> dict[str, Tensor]:
    spawn, move, timer = state["spawn_speed"], state["move_speed"], state["ramp_timer"]
    ramps = (spawn > 1) | (move > 1)
    rises = ramps & (timer < 0)
    return {
        "spawn_speed": spawn - (rises & (spawn > 1)).long(),
        "move_speed": move - (rises & (move > 1) & (state["ramp_index"] % 2 == 1)).long(),
        "ramp_timer": torch.where(rises, _RAMP, timer - ramps.long()),
        "ramp_index": state["ramp_index"] + rises,
    }
