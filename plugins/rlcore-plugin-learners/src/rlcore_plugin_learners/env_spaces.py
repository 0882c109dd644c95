"""The spaces of an env that modules are built for."""

from __future__ import annotations

from typing import Any

import gymnasium

from rlcore.errors import ConfigError

Spaces = tuple[gymnasium.Space[Any], gymnasium.Space[Any]]


def spaces_of(env: Any, arguments: dict[str, Any]) -> Spaces:
    """Return the observations and actions of one env.

    Args:
        env: an env, several in one, one of several agents, or an id of Gymnasium.
        arguments: for making an env of that id.

    Raises:
        ConfigError: its agents have different spaces.
    """
    if isinstance(env, str):
        made: Any = gymnasium.make(env, **arguments)
        spaces = made.observation_space, made.action_space
        made.close()
        return spaces
    if hasattr(env, "get_observation_space"):  # RLlib's envs of several agents
        return _of_agents(env)
    single = getattr(env, "single_observation_space", None)  # vector envs of Gymnasium have both
    if single is not None:
        return single, env.single_action_space
    return env.observation_space, env.action_space


def _of_agents(env: Any) -> Spaces:
    """Return the spaces that all agents of an env have.

    Raises:
        ConfigError: some have others.
    """
    spaces = [(env.get_observation_space(agent), env.get_action_space(agent)) for agent in env.possible_agents]
    if any(pair != spaces[0] for pair in spaces):
        raise ConfigError("the agents of the env have different spaces; say those of each module in its spec")
    return spaces[0]
