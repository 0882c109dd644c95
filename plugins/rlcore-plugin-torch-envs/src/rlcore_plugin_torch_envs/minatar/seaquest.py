"""Seaquest: a submarine that shoots fish and other submarines, and brings divers to the surface before its air ends.

MinAtar keeps lists, and goes through them in an order on which it depends what is hit. Here the things of a list have
slots: as many as there can be at once.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import torch
from rlcore_plugin_device import Random
from torch import Tensor

from rlcore_plugin_torch_envs.minatar.game import (
    DOWN,
    FIRE,
    LEFT,
    RIGHT,
    SIDE,
    UP,
    Game,
    Variables,
    ahead,
    inside,
    looked_up,
    walked,
    whole,
)

_OXYGEN: Final = 200
_SPAWN: Final = 20
_MOVE: Final = 5
_SHOT: Final = 10
_COOL_DOWN: Final = 5
_DIVER_SPAWN: Final = 30
_DIVER_MOVE: Final = 5
_MOST_DIVERS: Final = 6
# the fastest enemies stay for 30 steps, and one comes in each; a diver stays for 60, and comes every 30 steps; a shot
# stays for 9, and the next follows after 5
_ENEMIES: Final = 30
_PAIR: Final = 2
_LATE: Final = 2**40  # behind the number of every step

# the variables of the game, which the parts of a step rewrite one after the other
Draft: TypeAlias = dict[str, Tensor]


class Seaquest(Game):
    """Each hit earns 1, and six divers at the surface what is left of the air. Enemies and their shots end the game."""

    channels = 10
    minimal_actions = (0, 1, 2, 3, 4, 5)

    def begin(self, random: Random) -> Variables:
        """Return a submarine at the surface, alone."""
        return {
            "oxygen": self.full(_OXYGEN),
            "diver_count": self.full(0),
            "sub_x": self.full(5),
            "sub_y": self.full(0),
            "sub_or": self.empty(),
            "e_spawn_speed": self.full(_SPAWN),
            "e_spawn_timer": self.full(_SPAWN),
            "d_spawn_timer": self.full(_DIVER_SPAWN),
            "move_speed": self.full(_MOVE),
            "ramp_index": self.full(0),
            "shot_timer": self.full(0),
            "surface": ~self.empty(),
            "time": self.full(0),
            **self._things("f_bullet", _PAIR),
            **self._things("diver", _PAIR),
            "diver_timer": self.full(0, _PAIR),
            **self._things("enemy", _ENEMIES),
            "enemy_shoots": self.empty(_ENEMIES),  # a submarine, no fish
            "enemy_timer": self.full(0, _ENEMIES),
            "enemy_shot": self.full(0, _ENEMIES),
            "enemy_since": self.full(0, _ENEMIES),  # the step in which it came
            "e_bullets_left": self.empty(SIDE, SIDE),
            "e_bullets_right": self.empty(SIDE, SIDE),
        }

    def play(self, state: Variables, action: Tensor, random: Random) -> Variables:
        """Let enemies and divers come, move everything in MinAtar's order, and count the air."""
        zero = self.full(0)
        game = {**state, "time": state["time"] + 1, "reward": zero, "terminal": zero.bool()}
        numbers = random.uniform(0, 1, 5)
        _spawn_enemy(game, numbers[:, :3])
        _spawn_diver(game, numbers[:, 3:])
        _act(game, action)
        _move_shots(game)
        _move_divers(game)
        bombs = _move_enemies(game)
        self._move_bombs(game, bombs)
        _breathe(game)
        for name in ("e_spawn_timer", "d_spawn_timer", "shot_timer"):
            game[name] = (game[name] - 1).clamp(min=0)
        _close_up(game, "f_bullet", ())
        game["reward"] = game["reward"].float()
        return game

    def observation(self, state: Variables) -> Tensor:
        """Return the player in two halves, shots, trails, shots of enemies, fish, submarines, gauges, and divers."""
        sub_x, sub_y = state["sub_x"], state["sub_y"]
        enemy_x, enemy_y, enemies = (state[f"enemy_{name}"] for name in ("x", "y", "on"))
        diver_x, diver_y, divers = (state[f"diver_{name}"] for name in ("x", "y", "on"))
        behind = [enemy_x - ahead(state["enemy_right"]), diver_x - ahead(state["diver_right"])]
        trail = [torch.cat(parts, 1) for parts in (behind, [enemy_y, diver_y], [enemies, divers])]
        columns, bottom = self._cells % SIDE, self._cells >= SIDE * (SIDE - 1)
        air = (state["oxygen"].clamp(min=0) * SIDE // _OXYGEN)[:, None, None]
        picked_up = state["diver_count"][:, None, None]
        return torch.stack(
            [
                self.at(sub_x, sub_y),
                self.at(sub_x - ahead(state["sub_or"]), sub_y),
                self.drawn(state["f_bullet_x"], state["f_bullet_y"], state["f_bullet_on"]),
                self.drawn(*trail),
                state["e_bullets_left"] | state["e_bullets_right"],
                self.drawn(enemy_x, enemy_y, enemies & ~state["enemy_shoots"]),
                self.drawn(enemy_x, enemy_y, enemies & state["enemy_shoots"]),
                bottom & (columns < air),
                bottom & (columns >= SIDE - 1 - picked_up) & (columns < SIDE - 1),
                self.drawn(diver_x, diver_y, divers),
            ],
            -1,
        )

    def _things(self, name: str, count: int) -> dict[str, Tensor]:
        """Return room for things of a kind, none of which is there."""
        zeros, none = self.full(0, count), self.empty(count)
        return {f"{name}_x": zeros, f"{name}_y": zeros, f"{name}_right": none, f"{name}_on": none}

    def _move_bombs(self, game: Draft, fired: Tensor) -> None:
        """Move the shots of enemies, which end the game where they are, and where they come; two in a cell are one."""
        x, y = game["sub_x"], game["sub_y"]
        right = game["e_bullets_right"] | self.drawn(game["enemy_x"], game["enemy_y"], fired & game["enemy_right"])
        left = game["e_bullets_left"] | self.drawn(game["enemy_x"], game["enemy_y"], fired & ~game["enemy_right"])
        hit = looked_up(right | left, x, y)
        right = torch.nn.functional.pad(right[:, :, :-1], (1, 0))
        left = torch.nn.functional.pad(left[:, :, 1:], (0, 1))
        game["e_bullets_right"], game["e_bullets_left"] = right, left
        game["terminal"] = game["terminal"] | hit | looked_up(right | left, x, y)


def _spawn_enemy(game: Draft, numbers: Tensor) -> None:
    """Let a fish or a submarine come where it is time, unless others of its row go the other way."""
    from_left, shoots, row = numbers.unbind(1)
    right, y = (from_left < 1 / 2)[:, None], whole(row, 8)[:, None] + 1
    due = game["e_spawn_timer"] == 0
    opposed = (game["enemy_on"] & (game["enemy_y"] == y) & (game["enemy_right"] != right)).any(1)
    free = ~game["enemy_on"]
    slot = (due & ~opposed)[:, None] & free & (free.cumsum(1) == 1)
    values = {
        "x": torch.where(right, 0, SIDE - 1),
        "y": y,
        "right": right,
        "on": slot,
        "shoots": (shoots < 1 / 3)[:, None],
        "timer": game["move_speed"][:, None],
        "shot": torch.full_like(y, _SHOT),
        "since": game["time"][:, None],
    }
    _put(game, "enemy", slot, values)
    game["e_spawn_timer"] = torch.where(due, game["e_spawn_speed"], game["e_spawn_timer"])


def _spawn_diver(game: Draft, numbers: Tensor) -> None:
    """Let a diver come where it is time."""
    from_left, row = numbers.unbind(1)
    right, due = (from_left < 1 / 2)[:, None], game["d_spawn_timer"] == 0
    slot = due[:, None] & _next_slot(game["diver_on"])
    x, y = torch.where(right, 0, SIDE - 1), whole(row, 8)[:, None] + 1
    values = {"x": x, "y": y, "right": right, "on": slot, "timer": torch.full_like(y, _DIVER_MOVE)}
    _put(game, "diver", slot, values)
    game["d_spawn_timer"] = torch.where(due, _DIVER_SPAWN, game["d_spawn_timer"])


def _act(game: Draft, action: Tensor) -> None:
    """Do what the player does: shoot, or move."""
    fires = (action == FIRE) & (game["shot_timer"] == 0)
    slot = fires[:, None] & _next_slot(game["f_bullet_on"])
    x, y, right = (game[name][:, None] for name in ("sub_x", "sub_y", "sub_or"))
    _put(game, "f_bullet", slot, {"x": x, "y": y, "right": right, "on": slot})
    game["shot_timer"] = torch.where(fires, _COOL_DOWN, game["shot_timer"])
    game["sub_x"] = walked(game["sub_x"], action, LEFT, RIGHT)
    game["sub_y"] = walked(game["sub_y"], action, UP, DOWN, 0, 8)
    game["sub_or"] = (game["sub_or"] | (action == RIGHT)) & (action != LEFT)


def _move_shots(game: Draft) -> None:
    """Move the player's shots; the younger first hits a fish, or else a submarine, the oldest of a cell."""
    game["f_bullet_x"] = game["f_bullet_x"] + ahead(game["f_bullet_right"])
    game["f_bullet_on"] = game["f_bullet_on"] & inside(game["f_bullet_x"])
    rank = torch.where(game["enemy_shoots"], _LATE, 0) + game["enemy_since"]
    for slot in (1, 0):
        met = _met(game, slot) & game["enemy_on"]
        order = torch.where(met, rank, 2 * _LATE)
        _hit(game, slot, met & (order == order.amin(1, keepdim=True)))


def _move_divers(game: Draft) -> None:
    """Move the divers, the younger first; one that meets the player is picked up, as long as there is room."""
    moves = game["diver_on"] & (game["diver_timer"] == 0)
    x = torch.where(moves, game["diver_x"] + ahead(game["diver_right"]), game["diver_x"])
    same_row = game["diver_y"] == game["sub_y"][:, None]
    meets_first = game["diver_on"] & same_row & (game["diver_x"] == game["sub_x"][:, None])
    meets_then = moves & same_row & (x == game["sub_x"][:, None])
    count = game["diver_count"]
    picked_up: list[Tensor] = []
    for slot in (1, 0):
        here = (meets_first[:, slot] | meets_then[:, slot]) & (count < _MOST_DIVERS)
        count = count + here
        picked_up.append(here)
    game["diver_count"] = count
    game["diver_timer"] = torch.where(moves, _DIVER_MOVE, game["diver_timer"] - 1)
    game["diver_on"] = game["diver_on"] & inside(x) & ~torch.stack(picked_up[::-1], 1)
    game["diver_x"] = x
    _close_up(game, "diver", ("timer",))


def _move_enemies(game: Draft) -> Tensor:
    """Move the enemies, on which the player's shots are spent; return which of them shoot.

    Those that meet the player end the game. Of those that come to the cell of a shot it takes one: a submarine before
    a fish, and the youngest.
    """
    here, same_row = game["enemy_on"], game["enemy_y"] == game["sub_y"][:, None]
    moves = here & (game["enemy_timer"] == 0)
    fires = here & game["enemy_shoots"] & (game["enemy_shot"] == 0)  # also one that is hit, or leaves
    met = here & same_row & (game["enemy_x"] == game["sub_x"][:, None])
    x = torch.where(moves, game["enemy_x"] + ahead(game["enemy_right"]), game["enemy_x"])
    met_then = moves & same_row & (x == game["sub_x"][:, None])
    game["terminal"] = game["terminal"] | (met | met_then).any(1)
    game["enemy_x"], game["enemy_on"] = x, here & inside(x)
    game["enemy_timer"] = torch.where(moves, game["move_speed"][:, None], game["enemy_timer"] - 1)
    game["enemy_shot"] = torch.where(game["enemy_shot"] == 0, _SHOT, game["enemy_shot"] - 1)
    rank = torch.where(game["enemy_shoots"], _LATE, 0) + game["enemy_since"]
    for slot in (0, 1):
        came = _met(game, slot) & game["enemy_on"] & moves & ~met_then
        order = torch.where(came, rank, -1)
        _hit(game, slot, came & (order == order.amax(1, keepdim=True)))
    return fires


def _breathe(game: Draft) -> None:
    """Use air below the surface; at the surface bring up a diver, or six, and make the game harder."""
    oxygen, count, below = game["oxygen"], game["diver_count"], game["sub_y"] > 0
    arrives = ~below & ~game["surface"]
    lands = arrives & (count != 0)
    all_six = lands & (count == _MOST_DIVERS)
    game["terminal"] = game["terminal"] | (oxygen <= 0) | (arrives & (count == 0))
    game["reward"] = game["reward"] + torch.where(all_six, oxygen * 10 // _OXYGEN, 0)
    # MinAtar takes one more from none, after which there is one too few
    game["diver_count"] = torch.where(all_six, -1, count - lands.long())
    game["oxygen"] = torch.where(lands, _OXYGEN, oxygen - below.long())
    game["surface"] = ~below & (game["surface"] | lands)
    spawn, move, index = game["e_spawn_speed"], game["move_speed"], game["ramp_index"]
    rises = lands & ((spawn > 1) | (move > 2))
    game["e_spawn_speed"] = spawn - (rises & (spawn > 1)).long()
    game["move_speed"] = move - (rises & (move > 2) & (index % 2 == 1)).long()
    game["ramp_index"] = index + rises


def _met(game: Draft, slot: int) -> Tensor:
    """Return whether enemies are where one of the player's shots is, `[env, enemy]`."""
    x, y, there = (game[f"f_bullet_{name}"][:, slot, None] for name in ("x", "y", "on"))
    return there & (game["enemy_x"] == x) & (game["enemy_y"] == y)


def _hit(game: Draft, slot: int, target: Tensor) -> None:
    """Take out one enemy, `[env, enemy]`, or none, and the shot that hit it."""
    hit = target.any(1)
    is_slot = torch.arange(_PAIR, device=hit.device) == slot
    game["enemy_on"] = game["enemy_on"] & ~target
    game["f_bullet_on"] = game["f_bullet_on"] & ~(hit[:, None] & is_slot)
    game["reward"] = game["reward"] + hit


def _put(game: Draft, name: str, slot: Tensor, values: Draft) -> None:
    """Write a new thing into a slot, `[env, slot]`, or into none."""
    for part, value in values.items():
        game[f"{name}_{part}"] = torch.where(slot, value, game[f"{name}_{part}"])


def _next_slot(there: Tensor) -> Tensor:
    """Return which of two slots is the next, `[env, 2]`; the older thing is in the first."""
    return torch.arange(_PAIR, device=there.device) == there.sum(1, keepdim=True)


def _close_up(game: Draft, name: str, further: tuple[str, ...]) -> None:
    """Move the younger of two things into the first slot where that is free."""
    free = ~game[f"{name}_on"][:, :1]
    for part in ("x", "y", "right", "on", *further):
        values = game[f"{name}_{part}"]
        game[f"{name}_{part}"] = torch.where(free, values.roll(-1, 1), values)
