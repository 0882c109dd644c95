"""Whether a vector env goes on exactly after a resume, and whether one policy can act for all of its agents."""

from __future__ import annotations

from rlcore.errors import ConfigError
from rlcore.types import AgentSpec, Env, EnvSpec, Stateful, offers
from rlcore.types.part import with_defaults


def inexact_env(env: Env) -> str | None:
    """Return why a resume begins new episodes in these envs, or None when they go on in the middle of theirs."""
    if not offers(env, Stateful):
        return f"env {env.spec.id!r} has no state that could be saved; a resume begins new episodes"
    return with_defaults(env, Env).inexact()


def unrestored_env(env: Env) -> str | None:
    """Return what the last `load_state_dict` of these envs could not bring back, or None."""
    return with_defaults(env, Env).unrestored()


def check_one_policy(spec: EnvSpec) -> None:
    """Refuse one policy for agents that differ.

    Raises:
        ConfigError: names two of them.
    """
    advice = (
        "give each kind of agent a policy, [model.NAME] with agents = [...], or make them alike by a wrapper, as of "
        "SuperSuit"
    )
    for agent in spec.agents:
        check_alike(agent, spec.agents[0], f"[env] id = {spec.id!r}: one policy acts for all agents", advice)


def check_alike(agent: AgentSpec, first: AgentSpec, place: str, advice: str) -> None:
    """Refuse two agents of one policy with different spaces.

    Args:
        agent: one of them.
        first: the other.
        place: of what is wrong, for the message.
        advice: what to do, for the message.

    Raises:
        ConfigError: they have.
    """
    for kind, space, expected in zip(("observations", "actions"), agent[1:], first[1:], strict=True):
        if space != expected:
            raise ConfigError(
                f"{place}: the {kind} of {agent.name!r} are {space}, and those of {first.name!r} {expected}; {advice}"
            )
