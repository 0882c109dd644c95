"""The vector env: each agent of each world is an env, world after world."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import gymnasium
import numpy as np
import torch
from rlcore_plugin_device import TensorEnv, TensorStep
from torch import Tensor
from vmas.simulator.core import World
from vmas.simulator.environment import Environment

from rlcore.errors import ConfigError
from rlcore.state import check_array, through_checkpoint
from rlcore.types import AgentSpec, EnvSpec
from rlcore_plugin_vmas.config import Config
from rlcore_plugin_vmas.generators import Generators
from rlcore_plugin_vmas.variables import Variables
from rlcore_plugin_vmas.world import made_worlds

if TYPE_CHECKING:
    from rlcore import Context

log = logging.getLogger(__name__)

# steps of an episode while it is tried out whether a resume goes on exactly
_TRIED: Final = 4


def make(config: Config, context: Context) -> VmasEnv:
    """Build the env.

    Raises:
        ConfigError: there is no such scenario, its agents differ, or the number of agents does not fit.
    """
    device = context.device
    with Generators(device).running():
        one = made_worlds(config, 1, device)
    specs = _agents(config, one)
    agents = len(specs)
    hidden = -config.num_envs % agents
    if hidden and "env" not in context.built:  # the envs that are trained on; others come later
        least = max(config.num_envs // agents, 1) * agents
        raise ConfigError(
            f"[env] num_envs = {config.num_envs}: {config.scenario} has {agents} agents, and each is an env, so "
            f"num_envs is a multiple of it, as {least} or {least + agents}",
            remedy={"env": {"num_envs": least}},
        )
    if hidden:
        log.warning(
            "%s: %d agents are asked for, so %d more of the last world act at random; an evaluation has as many agents "
            "as episodes: let [evaluator] episodes be a multiple of %d",
            *(config.scenario, config.num_envs, hidden, agents),
        )
    return VmasEnv(config, specs, device)


def _agents(config: Config, simulator: Any) -> tuple[AgentSpec, ...]:
    """Return what the agents see and do.

    Raises:
        ConfigError: they see or do different things, or no arrays.
    """
    spaces = zip(simulator.agents, simulator.observation_space, simulator.action_space, strict=True)
    agents = [AgentSpec(agent.name, *(_space(config, space) for space in own)) for agent, *own in spaces]
    for agent in agents:
        for kind, space, first in zip(("observations", "actions"), agent[1:], agents[0][1:], strict=True):
            if space != first:
                raise ConfigError(
                    f"[env] scenario = {config.scenario!r}: the {kind} of {agent.name!r} are {space}, and those of "
                    f"{agents[0].name!r} {first}; the agents of a scenario must be alike. For those that differ there "
                    "is the env pettingzoo, with a policy for each kind"
                )
    return tuple(agents)


def _space(config: Config, space: Any) -> gymnasium.Space[Any]:
    """Return a space of gym as one of Gymnasium."""
    if hasattr(space, "n"):
        return gymnasium.spaces.Discrete(int(space.n))
    if not hasattr(space, "low"):
        raise ConfigError(f"[env] scenario = {config.scenario!r}: an observation is {space}; it must be one array")
    return gymnasium.spaces.Box(space.low, space.high, dtype=np.float32)


class VmasEnv(TensorEnv):
    """Steps the worlds of a scenario.

    Args:
        config: which scenario, and how many agents.
        agents: of one world.
        device: of the run.
    """

    def __init__(self, config: Config, agents: Sequence[AgentSpec], device: torch.device) -> None:
        self.device = device
        self._config = config
        self._agents = tuple(agents)
        self._worlds = -(-config.num_envs // len(agents))
        self._hidden = self._worlds * len(agents) - config.num_envs
        self._generators = Generators(device)
        with self._generators.running():
            self._simulator = made_worlds(config, self._worlds, device)
        self.spec = EnvSpec(
            id=config.scenario,
            observation_space=agents[0].observation_space,
            action_space=agents[0].action_space,
            num_envs=config.num_envs,
            max_episode_steps=config.max_steps,
            agents=self._agents,
        )

    def reset_tensors(self, seed: int | None = None) -> Tensor:
        """Begin an episode in every world, as VMAS does with `seed`: the worlds share one generator."""
        if seed is not None:
            self._generators.seed(seed)
        with self._generators.running():
            return self._rows(self._simulator.reset())

    def step_tensors(self, action: Tensor) -> TensorStep:
        """Step every world, and begin the next episode where one ended."""
        with self._generators.running():
            observed, rewards, terminated, truncated, _ = self._simulator.step(self._actions(action))
            final = self._rows(observed)
            terminated = terminated.reshape(-1).bool()
            truncated = truncated & ~terminated
            ended = terminated | truncated
            observation = self._begun(ended, final)
            reward = self._rows([reward.reshape(-1) for reward in rewards])
            return TensorStep(observation, reward, self._of_worlds(terminated), self._of_worlds(truncated), final)

    def state_dict(self) -> dict[str, Any]:
        """Return what the scenario, its world and its entities hold, and where the generators stand."""
        variables = Variables.of(self._simulator)
        return {"worlds": self._worlds, "generators": self._generators.state_dict(), **variables.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned.

        Raises:
            StorageError: it is of another scenario, or of another number of worlds.
        """
        saved = np.zeros(state["worlds"])
        check_array("the worlds of VMAS", saved, (self._worlds,), "[env] num_envs")
        with torch.inference_mode(False):
            Variables.of(self._simulator).load_state_dict(state, self.device)
        self._generators.load_state_dict(state["generators"])

    def modules(self) -> Iterator[str]:
        """Yield the modules of the simulator, the first of which has its version."""
        yield from ("vmas", Environment.__module__, World.__module__)

    def inexact(self) -> str | None:
        """Return why a resume would not go on exactly; it is tried out in two worlds, once."""
        return self._why_inexact

    @cached_property
    def _why_inexact(self) -> str | None:
        changes = {"num_envs": 2 * len(self._agents), "max_steps": _TRIED}
        saved, restored = (
            VmasEnv(self._config.model_copy(update=changes), self._agents, self.device) for _ in range(2)
        )
        unknown = Variables.of(self._simulator).unknown
        if unknown:
            return f"env {self.spec.id!r} holds {unknown[0]}, which cannot be saved"
        space = saved.spec.action_space
        space.seed(0)
        count = range(saved.spec.num_envs)
        actions = [
            torch.as_tensor(np.stack([space.sample() for _ in count]), device=self.device) for _ in range(3 * _TRIED)
        ]
        saved.reset_tensors(1)
        restored.reset_tensors(2)
        for action in actions[: _TRIED - 2]:
            saved.step_tensors(action)
        restored.load_state_dict(through_checkpoint(saved.state_dict()))
        for number, action in enumerate(actions[_TRIED - 2 :]):
            pairs = zip(saved.step_tensors(action), restored.step_tensors(action), strict=True)
            if not all(torch.equal(one, other) for one, other in pairs):
                return (
                    f"env {self.spec.id!r} does not go on as before: step {number + 1} after a restore is not the step "
                    "after the save"
                )
        return None

    def _begun(self, ended: Tensor, final: Tensor) -> Tensor:
        """Begin the next episodes; return what is observed then, and where none ended `final`."""
        count = int(ended.sum())  # waits for the device, as VMAS does in each step
        if not count:
            return final
        if count == self._worlds:
            return self._rows(self._simulator.reset())
        before = Variables.of(self._simulator).copied()
        self._simulator.reset(return_observations=False)
        Variables.of(self._simulator).put_back(before, ended)
        (observed,) = self._simulator.get_from_scenario(
            get_observations=True, get_rewards=False, get_infos=False, get_dones=False
        )
        Variables.of(self._simulator).put_back(before, ended)  # worlds that go on have been observed twice
        return torch.where(self._of_worlds(ended)[:, None], self._rows(observed), final)

    def _actions(self, action: Tensor) -> list[Tensor]:
        """Return the actions of each agent, `[world, *]`; agents that are not shown act at random."""
        if self._hidden:
            hidden = self._simulator.agents[-self._hidden :]
            others = [self._simulator.get_random_action(agent)[-1] for agent in hidden]
            action = torch.cat([action, torch.stack(others).to(action.dtype).reshape(-1, *action.shape[1:])])
        return list(action.reshape(self._worlds, len(self._agents), -1).unbind(1))

    def _rows(self, of_agents: Sequence[Tensor]) -> Tensor:
        """Return what there is of each agent, `[world, ...]`, as rows of envs."""
        return torch.stack(list(of_agents), dim=1).flatten(0, 1)[: self.spec.num_envs]

    def _of_worlds(self, values: Tensor) -> Tensor:
        """Return the values of worlds, for each of their agents."""
        return values.repeat_interleave(len(self._agents))[: self.spec.num_envs]
