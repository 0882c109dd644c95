"""Games stepped one by one in this process; the next episode begins in the step that ends one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import gymnasium
import numpy as np

from rlcore.errors import EnvError
from rlcore.state import check_array
from rlcore.types import EnvSpec, InfoListener, Step
from rlcore_plugin_atari.game import Game

if TYPE_CHECKING:
    from rlcore.types import Array
    from rlcore_plugin_atari.config import Config

_NOTHING: Final[Mapping[int, Any]] = MappingProxyType({})
_FRAMES_PER_SECOND: Final = 60.0


class SerialGames:
    """A list of games behind the interface of a vector env. Its state is that of the machines, to the bit.

    An observation is the latest frames, the oldest first; an episode begins with its first one repeated.

    Args:
        config: which game, and how many.
        rom: its name.
    """

    def __init__(self, config: Config, rom: str) -> None:
        self._config = config
        self._games = [Game(config, rom) for _ in range(config.num_envs)]
        first = self._games[0]
        shape = (config.stack, *first.frame_shape)
        self.spec = EnvSpec(
            id=f"atari {rom}",
            observation_space=gymnasium.spaces.Box(0, 255, shape, np.uint8),
            action_space=gymnasium.spaces.Discrete(len(first.actions)),
            num_envs=config.num_envs,
            frame_skip=config.frame_skip,
            max_episode_steps=-(-config.max_frames // config.frame_skip),
        )
        self.render_fps = _FRAMES_PER_SECOND / config.frame_skip
        self._observation = np.zeros((config.num_envs, *shape), dtype=np.uint8)
        self._reward = np.zeros(config.num_envs)
        self._terminated = np.zeros(config.num_envs, dtype=bool)
        self._truncated = np.zeros(config.num_envs, dtype=bool)
        self._ends: dict[int, Array] = {}  # screens of the episodes that ended in the last step
        self._listener: InfoListener | None = None

    def reset(self, seed: int | None = None) -> Array:
        """Begin a game in every env, env `i` with `seed + i`."""
        self._ends.clear()
        for index, game in enumerate(self._games):
            if seed is not None:
                game.seed(seed + index)
            game.begin()
            self._observation[index] = game.look()
            if self._listener is not None:
                self._listener(index, game.infos(), True)
        return self._observation

    def step(self, action: Array) -> Step:
        """Step every game; one whose episode ends begins the next at once."""
        finals: dict[int, Array] | None = None
        infos: dict[int, dict[str, Any]] | None = None
        self._terminated[:] = self._truncated[:] = False
        self._ends.clear()
        for index, (game, own_action) in enumerate(zip(self._games, action.tolist(), strict=True)):
            played = game.step(own_action)
            self._reward[index] = played.reward
            stack = self._observation[index]
            stack[:-1] = stack[1:]
            stack[-1] = game.look()
            if self._listener is not None:
                self._listener(index, {**game.infos(), "game_over": played.over}, False)
            life_ends = played.lost and self._config.episodic_life
            if played.over or played.cut or life_ends:
                finals, infos = finals or {}, infos or {}
                finals[index], infos[index] = stack.copy(), {"game_over": played.over}
                if self._config.render_mode is not None:
                    self._ends[index] = game.picture()
                self._truncated[index] = played.cut and not life_ends
                self._terminated[index] = not self._truncated[index]
                if played.over or played.cut:
                    game.begin()
                else:
                    game.next_life()
                stack[:] = game.look()
                if self._listener is not None:
                    self._listener(index, game.infos(), True)
        return Step(
            self._observation, self._reward, self._terminated, self._truncated, finals or _NOTHING, infos or _NOTHING
        )

    def tell_infos(self, listener: InfoListener) -> None:
        """Hand over what ALE's own envs say of every reset and step, and of a step whether the game is over."""
        self._listener = listener

    def render(self, indices: Sequence[int] | None = None) -> Array:
        """Return the screens of these games, or of all, uint8 `[picture, height, width, 3]`; see `Env`."""
        if self._config.render_mode is None:
            raise EnvError(f"env {self.spec.id!r} was made without render_mode = 'rgb_array'; it cannot be rendered")
        chosen = range(len(self._games)) if indices is None else indices
        return np.stack(
            [self._ends[index] if index in self._ends else self._games[index].picture() for index in chosen]
        )

    def close(self) -> None:
        """Do nothing: a machine goes with its object."""

    def modules(self) -> Iterator[str]:
        """Yield the name of the module that the machine is of."""
        yield "ale_py"

    def state_dict(self) -> dict[str, Any]:
        """Return the state of every game, and what was seen last."""
        return {"games": [game.state_dict() for game in self._games], "observation": self._observation.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with every game where it was.

        Raises:
            StorageError: they are of another number of games, or of other frames.
        """
        check_array("the latest frames", np.asarray(state["observation"]), self._observation.shape, "[env]")
        for game, saved in zip(self._games, state["games"], strict=True):
            game.load_state_dict(saved)
        self._observation[:] = state["observation"]
