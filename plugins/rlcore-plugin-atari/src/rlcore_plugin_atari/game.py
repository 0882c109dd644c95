"""One game: what a step of several frames gives, how it begins, and its exact state.

Actions stick here and not in ALE, frame by frame as there: the action that sticks is not part of ALE's state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import ale_py
import cv2
import numpy as np
from ale_py import roms

if TYPE_CHECKING:
    from rlcore.types import Array
    from rlcore_plugin_atari.config import Config


class Played(NamedTuple):
    """What happened in a step.

    Attributes:
        reward: points, over all of its frames.
        over: whether the game is over.
        cut: whether it was cut off.
        lost: whether a life was lost.
    """

    reward: float
    over: bool
    cut: bool
    lost: bool


class Game:
    """A game, from its power switch on.

    Args:
        config: of the env.
        rom: name of the game.

    Attributes:
        actions: of ALE, by the number of an action.
        frame_shape: of a frame.
    """

    def __init__(self, config: Config, rom: str) -> None:
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self._config = config
        self._path = roms.get_rom_path(rom)
        self._ale: Any = ale_py.ALEInterface()
        self._ale.setFloat("repeat_action_probability", 0.0)
        self._ale.setInt("random_seed", 0)
        self._ale.loadROM(self._path)
        chosen = self._ale.getLegalActionSet() if config.full_action_space else self._ale.getMinimalActionSet()
        self.actions = list(chosen)
        colours = () if config.grayscale else (3,)
        self.frame_shape = (config.size, config.size, *colours)
        self._screens = np.zeros((2, *self._ale.getScreenDims(), *colours), dtype=np.uint8)
        self._take = self._ale.getScreenGrayscale if config.grayscale else self._ale.getScreenRGB
        meanings = {action.name: action for action in self._ale.getMinimalActionSet()}
        self._first = meanings["FIRE"] if config.fire_reset and "FIRE" in meanings else None
        self._sticky = config.repeat_action_probability
        self._stuck = ale_py.Action.NOOP
        self._generator = np.random.default_rng(0)
        self._frames = 0
        self._lives = 0

    def seed(self, seed: int) -> None:
        """Let everything random follow from a seed; the next thing is `begin`."""
        self._generator = np.random.default_rng(seed)
        self._ale.setInt("random_seed", int(self._generator.integers(2**31 - 1)))
        self._ale.loadROM(self._path)

    def begin(self) -> None:
        """Begin a game: some frames without an action, then the button where it needs one."""
        waits = int(self._generator.integers(self._config.noop_max + 1))
        self._ale.reset_game()
        self._stuck = ale_py.Action.NOOP
        for _ in range(waits):
            self._ale.act(ale_py.Action.NOOP)
            if self._ale.game_over(with_truncation=False):
                self._ale.reset_game()
        self._frames = 0
        self._first_step(self._first)

    def next_life(self) -> None:
        """Go on with the next life, after one step of the button, or without an action."""
        self._first_step(self._first or ale_py.Action.NOOP)
        if self._ale.game_over(with_truncation=False):
            self.begin()

    def step(self, action: int) -> Played:
        """Take an action for as many frames as the config says."""
        reward, over = self._act(self.actions[action], self._config.frame_skip)
        self._frames += self._config.frame_skip
        lives = self._ale.lives()
        lost, self._lives = lives < self._lives, lives
        return Played(reward, over, self._frames >= self._config.max_frames and not over, lost)

    def look(self) -> Array:
        """Return the frame after the last step, uint8 `[*frame_shape]`: the maximum of its last two, made smaller."""
        pooled = np.maximum(self._screens[0], self._screens[1])
        size = self._config.size
        frame: Array = cv2.resize(pooled, (size, size), interpolation=cv2.INTER_AREA)
        return frame

    def picture(self) -> Array:
        """Return the screen, uint8 `[210, 160, 3]` in most games."""
        screen: Array = self._ale.getScreenRGB()
        return screen

    def infos(self) -> dict[str, int]:
        """Return what ALE's own envs say of each step: lives, and frames since the power switch and of the game."""
        return {
            "lives": self._ale.lives(),
            "frame_number": self._ale.getFrameNumber(),
            "episode_frame_number": self._ale.getEpisodeFrameNumber(),
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the machine with its generators, and of what is counted here."""
        machine: bytes = self._ale.cloneState(include_rng=True).__getstate__()
        return {
            "machine": np.frombuffer(machine, dtype=np.uint8).copy(),
            "generator": dict(self._generator.bit_generator.state),
            "frames": self._frames,
            "lives": self._lives,
            "stuck": self._stuck.value,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set it."""
        self._ale.restoreState(ale_py.ALEState(np.asarray(state["machine"]).tobytes()))
        self._generator.bit_generator.state = state["generator"]
        self._frames, self._lives = state["frames"], state["lives"]
        self._stuck = ale_py.Action(state["stuck"])

    def _first_step(self, action: Any) -> None:
        if action is not None:
            self._act(action, self._config.frame_skip)
        else:
            self._see()
        self._lives = self._ale.lives()

    def _act(self, action: Any, frames: int) -> tuple[float, bool]:
        """Act for some frames, and keep what is seen in the last two."""
        act, sticky, reward = self._ale.act, self._sticky, 0.0
        for ahead in reversed(range(frames)):
            if sticky and self._generator.random() < sticky:
                reward += act(self._stuck)
            else:
                reward += act(action)
                self._stuck = action
            if self._ale.game_over(with_truncation=False):
                self._see()
                return reward, True
            if ahead < 2:
                self._take(self._screens[ahead])
        if frames == 1:
            self._screens[1] = self._screens[0]
        return reward, False

    def _see(self) -> None:
        self._take(self._screens[0])
        self._screens[1] = self._screens[0]
