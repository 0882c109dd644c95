"""Which of the agents of a game each policy acts for, and so which rows of a batch are its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rlcore.envs import PassThrough, check_alike
from rlcore.errors import ConfigError, did_you_mean
from rlcore.types import AgentSpec, EnvSpec, Transform

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Shares:
    """The envs of each policy.

    Args:
        policies: the name of the policy that acts for each agent of a game, in the order of the agents.

    Attributes:
        policies: the same.
        names: of the policies, in the order in which they are first.
    """

    def __init__(self, policies: Sequence[str]) -> None:
        self.policies = tuple(policies)
        self.names = tuple(dict.fromkeys(policies))
        self._rows: dict[tuple[str, int, torch.device], Tensor] = {}

    def rows(self, name: str, num_envs: int, device: torch.device) -> Tensor:
        """Return the numbers of a policy's envs, in their order, where there are so many in all."""
        place = (name, num_envs, device)
        if place not in self._rows:
            import torch

            with torch.inference_mode(False):
                self._rows[place] = torch.tensor(self.envs(name, num_envs), dtype=torch.int64, device=device)
        return self._rows[place]

    def envs(self, name: str, num_envs: int) -> list[int]:
        """Return the numbers of a policy's envs; the last game may be one of which not all agents are there."""
        agents = len(self.policies)
        return [env for env in range(num_envs) if self.policies[env % agents] == name]

    def spec(self, name: str, spec: EnvSpec) -> EnvSpec:
        """Return what one policy needs to know of the envs: its own number of them, and their spaces.

        Args:
            name: of the policy.
            spec: of all envs, as the transforms leave them.
        """
        agent = dict(zip(self.policies, spec.agents, strict=True))[name]  # those of one policy are alike
        spaces = {} if are_alike(spec.agents) else agent._asdict()
        spaces.pop("name", None)
        return replace(spec, num_envs=len(self.envs(name, spec.num_envs)), agents=(), **spaces)


def are_alike(agents: Sequence[AgentSpec]) -> bool:
    """Return whether all agents have the same spaces."""
    return all(agent[1:] == agents[0][1:] for agent in agents)


def assigned(spec: EnvSpec, patterns: Mapping[str, Sequence[str]]) -> Shares:
    """Return which policy acts for which agent.

    Args:
        spec: of the envs.
        patterns: the names of the agents by policy; `*` stands for any letters, as in names of files.

    Raises:
        ConfigError: the env has no agents, or one has no policy, or two; or a policy has none, or agents that differ.
    """
    if not spec.agents:
        raise ConfigError(
            f"[model.{next(iter(patterns))}]: env {spec.id!r} has no agents that policies could be given to; several "
            "policies are for games of several agents, such as those of the env pettingzoo"
        )
    names = [agent.name for agent in spec.agents]
    for policy, globs in patterns.items():
        for pattern in globs:
            if not any(fnmatchcase(name, pattern) for name in names):
                raise ConfigError(
                    f"[model.{policy}] agents: {pattern!r} is no agent of env {spec.id!r}"
                    f"{did_you_mean(pattern, names)}; there are {', '.join(names)}"
                )
    policies: list[str] = []
    for name in names:
        serving = [policy for policy, globs in patterns.items() if any(fnmatchcase(name, glob) for glob in globs)]
        if not serving:
            raise ConfigError(
                f"[model.NAME] agents: no policy acts for {name!r} of env {spec.id!r}; add it to those of "
                f"{' or '.join(patterns)}, or give it a policy of its own"
            )
        if len(serving) > 1:
            both = " and ".join(f"[model.{policy}]" for policy in serving)
            raise ConfigError(f"{both} agents: both name {name!r} of env {spec.id!r}; one policy acts for an agent")
        policies += serving
    for agent, policy in zip(spec.agents, policies, strict=True):
        check_alike(agent, spec.agents[policies.index(policy)], f"[model.{policy}] agents", "give them two policies")
    return Shares(policies)


def check_transforms(spec: EnvSpec, transforms: Sequence[Transform]) -> None:
    """Refuse transforms of observations where agents see different things.

    Raises:
        ConfigError: names the first one.
    """
    for transform in () if are_alike(spec.agents) else transforms:
        if not isinstance(transform, PassThrough) or type(transform).step is not PassThrough.step:
            raise ConfigError(
                f"[[transform]] {type(transform).__name__} changes observations, and the agents of env {spec.id!r} "
                "see different ones, each wide enough for all; put it into the game as a wrapper, or leave it out"
            )
