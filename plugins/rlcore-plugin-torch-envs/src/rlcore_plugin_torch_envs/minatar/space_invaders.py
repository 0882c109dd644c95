"""Space invaders: aliens that come down, and a cannon that shoots them."""

from __future__ import annotations

from typing import Final

import torch
from rlcore_plugin_device import Random
from torch import Tensor

from rlcore_plugin_torch_envs.minatar.game import FIRE, LEFT, RIGHT, SIDE, Game, Variables, looked_up, walked

_COOL_DOWN: Final = 5
_MOVE: Final = 12
_SHOT: Final = 10


class SpaceInvaders(Game):
    """Each alien that is shot earns 1. They move faster the fewer are left; one of them, or a shot, ends the game."""

    channels = 6
    minimal_actions = (0, 1, 3, 5)

    def begin(self, random: Random) -> Variables:
        """Return four rows of aliens that move to the left."""
        return {
            "pos": self.full(5),
            "f_bullet_map": self.empty(SIDE, SIDE),
            "e_bullet_map": self.empty(SIDE, SIDE),
            "alien_map": self.empty(SIDE, SIDE) | self._wave(),
            "alien_dir": self.full(-1),
            "enemy_move_interval": self.full(_MOVE),
            "alien_move_timer": self.full(_MOVE),
            "alien_shot_timer": self.full(_SHOT),
            "ramp_index": self.full(0),
            "shot_timer": self.full(0),
        }

    def play(self, state: Variables, action: Tensor, random: Random) -> Variables:
        """Move cannon, shots and aliens; let one of these shoot; take out what was hit."""
        pos, shot_timer = walked(state["pos"], action, LEFT, RIGHT), state["shot_timer"]
        ground = torch.full_like(pos, SIDE - 1)
        fires = (action == FIRE) & (shot_timer == 0)
        shots = state["f_bullet_map"] | (fires[:, None, None] & self.at(pos, ground))
        shots = torch.nn.functional.pad(shots[:, 1:], (0, 0, 0, 1))
        bombs = torch.nn.functional.pad(state["e_bullet_map"][:, :-1], (0, 0, 1, 0))
        aliens, way, timer, landed = _marched(state)
        terminal = landed | looked_up(bombs | state["alien_map"] | aliens, pos, ground)
        drops = state["alien_shot_timer"] == 0
        bombs = bombs | (drops[:, None, None] & _nearest(aliens, pos))
        hit = aliens & shots
        aliens = aliens & ~hit
        cleared = ~aliens.flatten(1).any(1)
        faster = cleared & (state["enemy_move_interval"] > 6)
        return {
            "pos": pos,
            "f_bullet_map": shots & ~hit,
            "e_bullet_map": bombs,
            "alien_map": aliens | (cleared[:, None, None] & self._wave()),
            "alien_dir": way,
            "enemy_move_interval": state["enemy_move_interval"] - faster.long(),
            "alien_move_timer": timer - 1,
            "alien_shot_timer": torch.where(drops, _SHOT, state["alien_shot_timer"]) - 1,
            "ramp_index": state["ramp_index"] + faster,
            "shot_timer": (torch.where(fires, _COOL_DOWN, shot_timer) - 1).clamp(min=0),
            "reward": hit.flatten(1).sum(1).float(),
            "terminal": terminal,
        }

    def observation(self, state: Variables) -> Tensor:
        """Return cannon, aliens, those that move to the left, to the right, shots, and those of aliens."""
        cannon = self.at(state["pos"], torch.full_like(state["pos"], SIDE - 1))
        aliens, left = state["alien_map"], (state["alien_dir"] < 0)[:, None, None]
        return torch.stack(
            [cannon, aliens, aliens & left, aliens & ~left, state["f_bullet_map"], state["e_bullet_map"]], -1
        )

    def _wave(self) -> Tensor:
        columns = self._cells % SIDE
        return (self._cells < 4 * SIDE) & (columns >= 2) & (columns < 8)


def _marched(state: Variables) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the aliens, where they move, their timer, and whether they landed; at a side they turn, and come down."""
    aliens, way, timer = state["alien_map"], state["alien_dir"], state["alien_move_timer"]
    moves = timer == 0
    timer = torch.where(moves, torch.minimum(aliens.flatten(1).sum(1), state["enemy_move_interval"]), timer)
    turns = moves & torch.where(way < 0, aliens[:, :, 0].any(1), aliens[:, :, -1].any(1))
    aside = torch.where((way < 0)[:, None, None], aliens.roll(-1, 2), aliens.roll(1, 2))
    moved = torch.where(turns[:, None, None], aliens.roll(1, 1), aside)
    landed = turns & aliens[:, -1].any(1)
    return torch.where(moves[:, None, None], moved, aliens), torch.where(turns, -way, way), timer, landed


def _nearest(aliens: Tensor, pos: Tensor) -> Tensor:
    """Return an image of the lowest alien of the column that is the nearest to the cannon; of two, the left one."""
    columns = torch.arange(SIDE, device=aliens.device)
    distance = (columns - pos[:, None]).abs() * SIDE + columns  # no two are equal
    distance = torch.where(aliens.any(1), distance, SIDE * SIDE * SIDE)
    column = distance == distance.amin(1, keepdim=True)
    rows = columns[:, None]
    lowest = torch.where(aliens, rows, -1).amax(1, keepdim=True)
    return aliens & (rows == lowest) & column[:, None, :]
