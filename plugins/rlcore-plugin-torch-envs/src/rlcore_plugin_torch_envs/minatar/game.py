"""What the games have in common: actions, sticky ones among them, and what is drawn on 10 x 10 cells."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import gymnasium
import torch
from rlcore_plugin_device import FunctionalEnv, Moment, Random, TensorStep
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore_plugin_torch_envs.rendering import coloured

if TYPE_CHECKING:
    from rlcore import Context
    from rlcore.types import Array
    from rlcore_plugin_torch_envs.base import Config

Variables: TypeAlias = Mapping[str, Tensor]

NOTHING, LEFT, UP, RIGHT, DOWN, FIRE = range(6)
SIDE: Final = 10
STICKY: Final = 0.1  # how often the action before is repeated


class Game(FunctionalEnv):
    """A game on 10 x 10 cells, with the names and the order of events of MinAtar.

    Attributes:
        channels: of an observation.
        minimal_actions: those that have an effect in this game.
    """

    render_fps = 20.0
    channels: ClassVar[int]
    minimal_actions: ClassVar[tuple[int, ...]]

    def __init__(self, config: Config, context: Context, max_episode_steps: int | None) -> None:
        if config.precision != "float32":
            raise ConfigError(f"[env] precision: the state of {config.id!r} is of whole numbers; leave it out")
        if config.observed:
            raise ConfigError(f"[env] observed: {config.id!r} has images; leave it out")
        actions = self.minimal_actions if config.id.endswith("-v1") else tuple(range(6))
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (SIDE, SIDE, self.channels), bool)
        self.action_space = gymnasium.spaces.Discrete(len(actions))
        self.max_episode_steps = max_episode_steps
        self._actions = torch.tensor(actions, device=context.device)
        self._cells = torch.arange(SIDE * SIDE, device=context.device).reshape(SIDE, SIDE)
        super().__init__(config, context)

    @abstractmethod
    def begin(self, random: Random) -> Variables:
        """Return the variables of the game at the beginning of an episode."""

    @abstractmethod
    def play(self, state: Variables, action: Tensor, random: Random) -> Variables:
        """Return the variables after a step, and its `reward` and `terminal`; actions are those of all games."""

    def initial(self, random: Random) -> Variables:
        """Return the variables of the game, and the last action, of which there is none."""
        zero = self.full(0)
        return {**self.begin(random), "reward": zero.float(), "terminal": zero.bool(), "last_action": zero}

    def transition(self, state: Variables, action: Tensor, random: Random) -> Variables:
        """Return the variables of the game after a step, and the action that was taken."""
        return {**self.play(state, action, random), "last_action": action}

    def stepped(self, moment: Moment, action: Tensor) -> tuple[Moment, TensorStep]:
        """Return the moment after a step, and the step; the action before, also of an ended episode, may stick."""
        # the keys in the other order give numbers of their own
        sticks = Random(moment.keys.flip(-1), moment.step + 1).uniform() < STICKY
        taken = torch.where(sticks, moment.state["last_action"], self._actions[action])
        after, step = super().stepped(moment, taken)
        return after._replace(state={**after.state, "last_action": taken}), step

    def reward(self, state: Variables, action: Tensor, next_state: Variables) -> Tensor:
        """Return what the step earned."""
        return next_state["reward"]

    def terminal(self, state: Variables) -> Tensor:
        """Return whether the game is over."""
        return state["terminal"]

    def pictures(self, state: Variables) -> Array:
        """Return the images, each channel in a colour of its own."""
        return coloured(self.observation(state))

    def full(self, value: int, *shape: int) -> Tensor:
        """Return a whole number for every env, `[env, *shape]`."""
        return torch.full((self.num_envs, *shape), value, device=self.device)

    def empty(self, *shape: int) -> Tensor:
        """Return False for every env, `[env, *shape]`."""
        return torch.zeros((self.num_envs, *shape), dtype=torch.bool, device=self.device)

    def at(self, x: Tensor, y: Tensor) -> Tensor:
        """Return images `[env, 10, 10]` that are True at one cell inside of the image, `[env]`."""
        return self._cells == (y * SIDE + x)[:, None, None]

    def drawn(self, x: Tensor, y: Tensor, present: Tensor) -> Tensor:
        """Return images `[env, 10, 10]` that are True where one of things `[env, thing]` is."""
        # those that are nowhere are drawn on a cell behind the last
        cell = torch.where(present & inside(x), y * SIDE + x, SIDE * SIDE)
        return self.empty(SIDE * SIDE + 1).scatter(1, cell, True)[:, :-1].reshape(-1, SIDE, SIDE)


def inside(x: Tensor) -> Tensor:
    """Return which columns are inside of the image."""
    return (x >= 0) & (x < SIDE)


def walked(position: Tensor, action: Tensor, back: int, forth: int, low: int = 0, high: int = SIDE - 1) -> Tensor:
    """Return positions after actions, of which one leads a cell back and one a cell forth."""
    return (position + (action == forth).long() - (action == back).long()).clamp(low, high)


def ahead(right: Tensor) -> Tensor:
    """Return 1 to the right, and -1 to the left."""
    return right.long() * 2 - 1


def looked_up(image: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return the value of images `[env, 10, 10]` at one cell, `[env]`."""
    return image.flatten(1).gather(1, (y * SIDE + x)[:, None])[:, 0]


def whole(unit: Tensor, high: int) -> Tensor:
    """Return whole numbers from 0 on, below `high`, of numbers from 0 on, below 1."""
    return (unit * high).long()
