"""One game of PettingZoo's parallel interface: its agents in a fixed order, and how it is repeated."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Final

import numpy as np

from rlcore.errors import FROM_OUTSIDE, EnvError, StorageError, describe

_SEEDS: Final = 2**31
# episodes among which one with all agents is looked for
_MOST: Final = 100


class Game:
    """A game in the middle of an episode.

    Every episode begins with a seed of its own, so that it can be played again from the actions so far: that is the
    state of a game.

    Args:
        make: returns an env of PettingZoo's parallel interface.
        name: for messages.
        tell: called with an agent that is absent from an episode.

    Attributes:
        agents: the names of all agents, in the order of their rows.
        env: of PettingZoo.
        alive: `[agent]`, who plays on.
    """

    def __init__(self, make: Callable[[], Any], name: str, tell: Callable[[Any], object]) -> None:
        self.env: Any = make()
        self.agents: list[Any] = list(self.env.possible_agents)
        self.alive = np.zeros(len(self.agents), dtype=bool)
        self._name = name
        self._tell = tell
        self._present: set[Any] = set()
        self._seed = 0
        self._episode = 0
        self._actions: list[list[Any]] = []

    def seed(self, seed: int) -> None:
        """Let all that is random follow from a seed."""
        self._seed, self._episode = seed, 0

    def reset_whole(self) -> tuple[Mapping[Any, Any], Mapping[Any, Any]]:
        """Begin the next episode in which all agents are there; the rest is that of `reset`.

        Raises:
            EnvError: there is none among many.
        """
        for _ in range(_MOST):
            begun = self.reset()
            if self.alive.all():
                return begun
        missing = [repr(agent) for agent, alive in zip(self.agents, self.alive, strict=True) if not alive]
        raise EnvError(
            f"env {self._name!r}: not all agents are there in any of {_MOST} episodes; missing in the last of them: "
            f"{', '.join(missing)}; let possible_agents be those that can play together"
        )

    def reset(self) -> tuple[Mapping[Any, Any], Mapping[Any, Any]]:
        """Begin the next episode, and return the observations and the infos by agent; see `alive` for who is there.

        Raises:
            EnvError: the game fails, or an agent plays of which it told nothing.
        """
        self._actions = []
        self._episode += 1
        digest = hashlib.blake2b(f"{self._seed}/{self._episode}".encode(), digest_size=8).digest()
        observations, infos = self._called(self.env.reset, seed=int.from_bytes(digest, "big") % _SEEDS)
        self._present = set(self.env.agents)
        for agent in self.env.agents:
            if agent not in self.agents:
                raise EnvError(f"env {self._name!r}: {agent!r} plays, and is not among possible_agents")
            if agent not in observations:
                raise EnvError(f"env {self._name!r}: {agent!r} plays, and reset gives no observation of it")
        self.alive[:] = [agent in self._present for agent in self.agents]
        if not self.alive.all():
            self._tell(self.agents[int(self.alive.argmin())])
        return observations, infos

    def step(self, actions: Sequence[Any]) -> tuple[Mapping[Any, Any], ...]:
        """Let those who play on act, and return what PettingZoo does: five mappings by agent.

        Args:
            actions: one for each agent, of its own space; those of agents that are out do not matter.
        """
        self._actions.append([np.array(action) for action in actions])
        # copies, as a game may write into the actions that it is given
        taken = {agent: copy(actions[row]) for row, agent in enumerate(self.agents) if self.alive[row]}
        result: tuple[Mapping[Any, Any], ...] = self._called(self.env.step, taken)
        _, _, terminations, truncations, _ = result
        for row, agent in enumerate(self.agents):
            if self.alive[row]:
                self.alive[row] = not (terminations.get(agent, True) or truncations.get(agent, False))
        if not self._present.issuperset(self.env.agents):
            late = next(agent for agent in self.env.agents if agent not in self._present)
            raise EnvError(
                f"env {self._name!r}: {late!r} comes in the middle of an episode; agents that come later cannot be "
                "trained here"
            )
        if not self.env.agents:
            self.alive[:] = False
        return result

    def state_dict(self) -> dict[str, Any]:
        """Return the seed, the number of the episode, and the actions in it, `[step, ...]` for each agent."""
        actions = [np.stack(own) for own in zip(*self._actions, strict=True)] or None
        return {"seed": self._seed, "episode": self._episode, "actions": actions, "alive": self.alive.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Play the episode again up to where it was.

        Raises:
            StorageError: it went otherwise, so that something in it does not follow from its seed.
        """
        self._seed, self._episode = state["seed"], state["episode"] - 1
        self.reset()
        for actions in _steps(state["actions"]):
            self.step(actions)
        if not np.array_equal(self.alive, state["alive"]):
            raise StorageError(
                f"env {self._name!r}: the running episode cannot be repeated, so something in the game does not follow "
                "from the seed of its reset; begin a new run"
            )

    def _called(self, function: Callable[..., Any], *arguments: Any, **keys: Any) -> Any:
        try:
            return function(*arguments, **keys)
        except FROM_OUTSIDE:
            raise
        except BaseException as error:
            raise EnvError(f"env {self._name!r} raised {describe(error)}") from error


def _steps(actions: Any) -> Iterable[Sequence[Any]]:
    """Return the actions of each step, from those of each agent; or from those of each step, as states were once."""
    if actions is None:
        return []
    return zip(*actions, strict=True) if isinstance(actions, list) else actions
