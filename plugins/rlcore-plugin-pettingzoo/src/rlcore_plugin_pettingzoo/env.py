"""Games of several agents as a vector env: each agent is an env, and its row is as wide as that of the widest."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, Field

from rlcore.config import import_named
from rlcore.envs import ACTION_MASK, Packed, keeping_to_masks
from rlcore.errors import FROM_OUTSIDE, ConfigError, EnvError, RlcoreError, describe
from rlcore.types import AgentSpec, Context, EnvSpec, InfoListener, Step
from rlcore_plugin_pettingzoo.games import Game
from rlcore_plugin_pettingzoo.sight import Sight
from rlcore_plugin_pettingzoo.spaces import AgentSpaces

log = logging.getLogger(__name__)

_NOTHING: Final[Mapping[int, Any]] = MappingProxyType({})


class PettingZooEnv:
    """Games whose agents act at once, each agent one env; an agent that is out waits for the end of its game.

    Args:
        config: which game, and how many agents.
        context: unused.

    Raises:
        ConfigError: there is no such game, its spaces are no arrays, or the number of agents does not fit.
    """

    class Config(BaseModel, extra="forbid"):
        """Which game, and for how many agents."""

        id: str = Field(description="module with `parallel_env`, such as mpe2.simple_spread_v3, or 'module:function'")
        num_envs: int = Field(1, ge=1, description="agents that act together: those of one game, or several times that")
        kwargs: dict[str, Any] = Field(default_factory=dict, description="arguments of what makes the game")
        mask_key: str | None = Field(
            None, description="info of an agent that says which of its actions are allowed; default: all are"
        )

    def __init__(self, config: Config, context: Context) -> None:
        self._told, self._id = False, config.id
        make = partial(_made, _maker(config.id), config)
        first = Game(make, config.id, self._tell_of_an_absent)
        self._per_game = len(first.agents)
        self._rows = config.num_envs
        hidden = -config.num_envs % self._per_game
        if hidden and "env" not in context.built:  # the envs that are trained on; others come later
            least = max(config.num_envs // self._per_game, 1) * self._per_game
            raise ConfigError(
                f"[env] num_envs = {config.num_envs}: {config.id} has {self._per_game} agents, and each is an env, "
                f"so num_envs is a multiple of it, as {least} or {least + self._per_game}",
                remedy={"env": {"num_envs": least}},
            )
        if hidden:
            log.warning(
                "%s: %d agents are asked for, so %d more of the last game act at random; an evaluation has as many "
                "agents as episodes: let [evaluator] episodes be a multiple of %d",
                *(config.id, config.num_envs, hidden, self._per_game),
            )
        count = (config.num_envs + hidden) // self._per_game
        self._games = [first, *(Game(make, config.id, self._tell_of_an_absent) for _ in range(count - 1))]
        game = first.env
        self._sights = [
            Sight(game.observation_space(agent), game.action_space(agent), config.mask_key) for agent in first.agents
        ]
        agents = tuple(
            AgentSpec(str(agent), sight.space, game.action_space(agent))
            for agent, sight in zip(first.agents, self._sights, strict=True)
        )
        are_packed = any(isinstance(agent.observation_space, Packed) for agent in agents)
        if are_packed and any(agent[1:] != agents[0][1:] for agent in agents):
            raise ConfigError(
                f"[env] id = {config.id!r}: agents with observations that are dicts, or with masks, must have the same "
                "spaces; wrap the game, so that they are arrays, or alike"
            )
        self._spaces = AgentSpaces(agents, config.id)
        observation_space = self._spaces.observation_space
        self.spec = EnvSpec(
            id=config.id,
            observation_space=observation_space,
            action_space=self._spaces.action_space,
            num_envs=config.num_envs,
            reset_mode="next_step",
            waits=True,
            agents=agents,
        )
        total = count * self._per_game
        shape, dtype = observation_space.shape, observation_space.dtype
        assert shape is not None
        self._observation = np.zeros((total, *shape), dtype)
        self._reward = np.zeros(total)
        self._terminated = np.zeros(total, dtype=bool)
        self._truncated = np.zeros(total, dtype=bool)
        self._listener: InfoListener | None = None
        self._allowed = keeping_to_masks(self.spec)

    def reset(self, seed: int | None = None) -> npt.NDArray[Any]:
        """Begin all games; every agent is there, as an episode that lacks one is passed over.

        The seed of a game is `seed` plus the number of its first agent, so that a share of the games is seeded as the
        same games are among all.
        """
        for number, game in enumerate(self._games):
            if seed is not None:
                game.seed(seed + number * self._per_game)
            self._begin(number, game, *game.reset_whole())
        return self._observation[: self._rows]

    def step(self, action: npt.NDArray[Any]) -> Step:
        """Step every game; one in which nobody plays on any more begins its next episode."""
        self._reward[:] = 0
        infos: dict[int, Any] = {}
        for number, game in enumerate(self._games):
            rows = slice(number * self._per_game, (number + 1) * self._per_game)
            if game.alive.any():
                self._play(game, rows, self._completed(action[rows], game), infos)
            else:
                self._begin(number, game, *game.reset())
        shown = slice(self._rows)
        ended = self._terminated[shown], self._truncated[shown]
        return Step(self._observation[shown], self._reward[shown], *ended, _NOTHING, infos or _NOTHING)

    def tell_infos(self, listener: InfoListener) -> None:
        """Hand over the infos of each agent in every reset and step; of one that is out there are none."""
        self._listener = listener

    def close(self) -> None:
        """Close the games."""
        for game in self._games:
            game.env.close()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of every game, and what was seen last of agents that are out."""
        return {
            "games": [game.state_dict() for game in self._games],
            "observation": self._observation.copy(),
            "terminated": self._terminated.copy(),
            "truncated": self._truncated.copy(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Play the running episodes again up to where they were."""
        for game, saved in zip(self._games, state["games"], strict=True):
            game.load_state_dict(saved)
        self._observation[:] = state["observation"]
        self._terminated[:], self._truncated[:] = state["terminated"], state["truncated"]

    def _begin(self, number: int, game: Game, observations: Mapping[Any, Any], infos: Mapping[Any, Any]) -> None:
        """Show how an episode begins; an agent that is not in it is out from the first step to the last."""
        rows = slice(number * self._per_game, (number + 1) * self._per_game)
        self._terminated[rows], self._truncated[rows] = ~game.alive, False
        for row, agent in enumerate(game.agents, rows.start):
            if self._terminated[row]:
                self._observation[row] = 0
                continue
            own, place = infos.get(agent, {}), row - rows.start
            if ACTION_MASK in own and not self._sights[place].masks_actions:
                raise EnvError(
                    f"env {self.spec.id!r}: the infos of its agents have an {ACTION_MASK}, which nothing reads; set "
                    f"[env] mask_key = {ACTION_MASK!r}"
                )
            self._see(row, place, observations[agent], own, over=False)
            if self._listener is not None and row < self._rows:  # those that are not shown are nobody's
                self._listener(row, own, True)

    def _play(self, game: Game, rows: slice, actions: list[Any], infos: dict[int, Any]) -> None:
        before = game.alive.copy()
        observations, rewards, terminations, truncations, given = game.step(actions)
        for place, agent in enumerate(game.agents):
            if not before[place]:
                continue
            row = rows.start + place
            if agent in observations:
                over = not game.alive[place]
                self._see(row, place, observations[agent], given.get(agent, {}), over)
            self._reward[row] = rewards.get(agent, 0.0)
            self._truncated[row] = truncations.get(agent, False) and not terminations.get(agent, False)
            self._terminated[row] = not game.alive[place] and not self._truncated[row]
            if self._listener is not None and row < self._rows:
                self._listener(row, given.get(agent, {}), False)
            if not game.alive[place] and row < self._rows:
                infos[row] = dict(given.get(agent, {}))

    def _completed(self, actions: npt.NDArray[Any], game: Game) -> list[Any]:
        """Return the action of each agent; where some of a game alone are shown, the others act at random."""
        own = [self._spaces.action(action, place) for place, action in enumerate(actions)]
        hidden = game.agents[len(own) :]
        if not hidden:
            return own
        samples = [np.asarray(game.env.action_space(agent).sample())[np.newaxis] for agent in hidden]
        seen = self._observation[self._rows :]  # of the last game alone some agents are not shown
        return own + [self._allowed(sample, row[np.newaxis])[0] for sample, row in zip(samples, seen, strict=True)]

    def _see(self, row: int, place: int, observation: Any, infos: Mapping[str, Any], over: bool) -> None:
        """Write what an agent sees.

        Raises:
            EnvError: it is not what its space says.
        """
        try:
            self._spaces.write(self._observation[row], place, self._sights[place](observation, infos, over))
        except ValueError as error:
            raise EnvError(f"env {self.spec.id!r}, agent {self.spec.agents[place].name!r}: {error}") from None

    def _tell_of_an_absent(self, agent: Any) -> None:
        if not self._told:
            self._told = True
            log.warning(
                "env %r: %r is not in every episode, and waits while others play; what begins with a reset, as an "
                "evaluation does, is an episode with all agents",
                *(self._id, agent),
            )


def _maker(place: str) -> Callable[..., Any]:
    if ":" in place:
        return import_named(place, "[env] id")
    try:
        module = importlib.import_module(place)
    except ImportError as error:
        raise ConfigError(
            f"[env] id = {place!r} cannot be imported: {error}. It names a module with parallel_env, such as "
            "mpe2.simple_spread_v3 (pip install mpe2) or pettingzoo.butterfly.pistonball_v6, or 'module:function'"
        ) from error
    maker: Callable[..., Any] | None = vars(module).get("parallel_env")
    if maker is None:
        raise ConfigError(f"[env] id = {place!r}: the module has no parallel_env; name a function, 'module:function'")
    return maker


def _made(maker: Callable[..., Any], config: PettingZooEnv.Config) -> Any:
    try:
        env = maker(**config.kwargs)
    except (RlcoreError, *FROM_OUTSIDE):
        raise
    except BaseException as error:
        raise ConfigError(f"[env] id = {config.id!r} cannot be made: {describe(error)}") from error
    if not hasattr(env, "possible_agents") or hasattr(env, "agent_iter"):
        raise ConfigError(f"[env] id = {config.id!r}: {type(env).__name__} has not PettingZoo's parallel interface")
    return env
