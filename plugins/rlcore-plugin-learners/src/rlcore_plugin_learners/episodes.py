"""Episodes of one agent, as RLlib's scripts collect them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

import gymnasium
import numpy as np

from rlcore.errors import ConfigError, NotSupportedError

Indices = int | slice | Sequence[int] | None


class SingleAgentEpisode:
    """The steps of one agent, from a reset or a cut on: one observation more than there are actions and rewards.

    Args:
        id_: its id; default: a random one.
        observations: those so far; likewise the next ones.
        observation_space: of the env.
        infos: of the env, as many as observations.
        actions: those so far.
        action_space: of the env.
        rewards: those so far.
        terminated: whether the env ended.
        truncated: whether it was ended.
        extra_model_outputs: by name one for each action, such as `action_logp`.
        t_started: number of its first step in the env.
        len_lookback_buffer: steps in front that are no part of it: 0 where data is handed over.
        agent_id: of the agent.
        module_id: of the module that acts.
        multi_agent_episode_id: of the episode that it is a part of.

    Raises:
        ConfigError: the numbers of observations, actions and rewards do not fit each other.
        NotSupportedError: steps in front were asked for.
    """

    def __init__(
        self,
        id_: str | None = None,
        *,
        observations: Sequence[Any] | None = None,
        observation_space: gymnasium.Space[Any] | None = None,
        infos: Sequence[dict[str, Any]] | None = None,
        actions: Sequence[Any] | None = None,
        action_space: gymnasium.Space[Any] | None = None,
        rewards: Sequence[Any] | None = None,
        terminated: bool = False,
        truncated: bool = False,
        extra_model_outputs: Mapping[str, Sequence[Any]] | None = None,
        t_started: int | None = None,
        len_lookback_buffer: int | Literal["auto"] = "auto",
        agent_id: Any = None,
        module_id: str | None = None,
        multi_agent_episode_id: Any = None,
    ) -> None:
        if rewards is not None and len(rewards) and len_lookback_buffer != 0:
            raise NotSupportedError(
                f"len_lookback_buffer is {len_lookback_buffer!r}: no steps are kept in front of an episode; say "
                "len_lookback_buffer=0, and all that is handed over is part of it"
            )
        self.id_ = id_ or uuid.uuid4().hex
        self.observation_space = observation_space
        self.action_space = action_space
        self.observations = list(() if observations is None else observations)
        self.actions = list(() if actions is None else actions)
        self.rewards = list(() if rewards is None else rewards)
        self.infos = list(infos) if infos is not None else [{} for _ in self.observations]
        self.extra_model_outputs = {name: list(values) for name, values in (extra_model_outputs or {}).items()}
        self.is_terminated = terminated
        self.is_truncated = truncated
        self.t_started = t_started or 0
        self.agent_id = agent_id
        self.module_id = module_id
        self.multi_agent_episode_id = multi_agent_episode_id
        self._is_numpy = False
        self.validate()

    def validate(self) -> None:
        """Refuse an episode whose parts do not fit each other."""
        steps, several = len(self.rewards), len(self.observations)
        lengths = {"actions": len(self.actions), **{name: len(one) for name, one in self.extra_model_outputs.items()}}
        for name, length in lengths.items():
            if length != steps:
                raise ConfigError(f"episode: there are {length} {name} and {steps} rewards; there is one for each step")
        if several != steps + 1 and (several or steps):
            raise ConfigError(f"episode: there are {several} observations and {steps} rewards; one observation is more")

    def add_env_reset(self, observation: Any, infos: dict[str, Any] | None = None) -> None:
        """Begin with an observation.

        Raises:
            ConfigError: there is one already.
        """
        if self.is_reset:
            raise ConfigError("episode: it has begun already; make another one for the next reset")
        self.observations.append(observation)
        self.infos.append(infos or {})

    def add_env_step(
        self,
        observation: Any,
        action: Any,
        reward: float,
        infos: dict[str, Any] | None = None,
        *,
        terminated: bool = False,
        truncated: bool = False,
        extra_model_outputs: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a step.

        Raises:
            ConfigError: it has not begun, it is done, is in arrays already, or the step lacks outputs that others have.
        """
        if not self.is_reset or self.is_done or self.is_numpy:
            raise ConfigError("episode: a step follows add_env_reset, and no end and no to_numpy")
        outputs = dict(extra_model_outputs or {})
        if self.rewards and set(outputs) != set(self.extra_model_outputs):
            raise ConfigError(
                f"episode: extra_model_outputs are {sorted(outputs)}, and {sorted(self.extra_model_outputs)} before"
            )
        self.observations.append(observation)
        self.actions.append(action)
        self.rewards.append(reward)
        self.infos.append(infos or {})
        for name, value in outputs.items():
            self.extra_model_outputs.setdefault(name, []).append(value)
        self.is_terminated, self.is_truncated = terminated, truncated

    @property
    def is_reset(self) -> bool:
        """Whether there is a first observation."""
        return len(self.observations) > 0

    @property
    def is_done(self) -> bool:
        """Whether it ended."""
        return self.is_terminated or self.is_truncated

    @property
    def is_numpy(self) -> bool:
        """Whether its parts are arrays."""
        return self._is_numpy

    @property
    def t(self) -> int:
        """The number of the step in the env that comes next."""
        return self.t_started + len(self)

    def to_numpy(self) -> Self:
        """Make arrays `[step, ...]` of its parts, and return itself."""
        make: Callable[[Any], Any] = np.asarray
        self.observations, self.actions, self.rewards = map(make, (self.observations, self.actions, self.rewards))
        self.extra_model_outputs = {name: make(values) for name, values in self.extra_model_outputs.items()}
        self._is_numpy = True
        return self

    def cut(self, len_lookback_buffer: int = 0) -> SingleAgentEpisode:
        """Return the episode that goes on where this one stands, with the last observation as its first.

        Raises:
            ConfigError: it is done.
            NotSupportedError: steps in front were asked for.
        """
        if self.is_done:
            raise ConfigError("episode: it is done; nothing goes on after it")
        if len_lookback_buffer:
            raise NotSupportedError(
                f"len_lookback_buffer is {len_lookback_buffer}: no steps are kept in front; leave it out"
            )
        return SingleAgentEpisode(
            self.id_,
            observations=[self.observations[-1]],
            observation_space=self.observation_space,
            infos=[self.infos[-1]],
            action_space=self.action_space,
            t_started=self.t,
            agent_id=self.agent_id,
            module_id=self.module_id,
            multi_agent_episode_id=self.multi_agent_episode_id,
        )

    def get_observations(self, indices: Indices = None) -> Any:
        """Return one observation, or several; None for all."""
        return _at(self.observations, indices)

    def get_infos(self, indices: Indices = None) -> Any:
        """Return infos; see `get_observations`."""
        return _at(self.infos, indices)

    def get_actions(self, indices: Indices = None) -> Any:
        """Return actions; see `get_observations`."""
        return _at(self.actions, indices)

    def get_rewards(self, indices: Indices = None) -> Any:
        """Return rewards; see `get_observations`."""
        return _at(self.rewards, indices)

    def get_extra_model_outputs(self, key: str, indices: Indices = None) -> Any:
        """Return outputs of one name; see `get_observations`."""
        return _at(self.extra_model_outputs[key], indices)

    def get_return(self) -> float:
        """Return the sum of the rewards."""
        return float(sum(self.rewards))

    def env_steps(self) -> int:
        """Return how many steps there are."""
        return len(self)

    def agent_steps(self) -> int:
        """Return how many steps there are."""
        return len(self)

    def __len__(self) -> int:
        return len(self.rewards)


def _at(values: Any, indices: Indices) -> Any:
    if indices is None:
        return values
    if isinstance(indices, int | slice):
        return values[indices]
    return [values[index] for index in indices]
