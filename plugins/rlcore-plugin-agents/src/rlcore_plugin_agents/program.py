"""A policy as one program of torch: raw observations in, the actions that the env takes out."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from rlcore.envs import Packed, changes_observations, observation_dtype, transformed_spec
from rlcore.errors import FROM_OUTSIDE, ConfigError, describe
from rlcore.run import AgentParts
from rlcore.types import Transform, defines, has_memory
from rlcore_plugin_agents.agent import acts_on_actions

Observed = Tensor | dict[str, Tensor]
# observations in the example that a program is made of; one alone would be taken for the only number there is
EXAMPLES = 3
# of a program; all but the first only where its policy has a state
INPUTS: Final = ("observation", "state", "first")


class Program(nn.Module):
    """Computes what `Agent.act` returns, for batches of observations `[env, *shape]`.

    Args:
        parts: of the agent; on the CPU.

    Raises:
        ConfigError: a transform cannot be a part of it; names it.
    """

    def __init__(self, parts: AgentParts) -> None:
        super().__init__()
        self._space: Any = parts.spec.observation_space
        spec = parts.spec
        modules: list[nn.Module] = []
        after: list[nn.Module] = []
        remembering: list[bool] = []
        for number, transform in enumerate(parts.transforms):
            spec = transformed_spec(spec, transform)
            label = parts.labels[f"transform.{number}"]
            if changes_observations(transform):
                modules.append(_observation_module(transform, label))
                remembering.append(defines(transform, Transform.memory_module))
            if acts_on_actions(transform):
                after.append(_action_module(transform, label))
        self.observation_transforms = nn.ModuleList(modules)
        self.action_transforms = nn.ModuleList(reversed(after))
        self.model = parts.model  # its weights are those of the program
        self._policy: Any = parts.model.policy  # of either kind, with a state or without
        self._remembering = remembering
        self._policy_remembers = has_memory(parts.model)
        self._dtype = torch_dtype(observation_dtype(spec.observation_space))

    def forward(self, observation: Observed) -> Tensor:
        """Return the likeliest actions `[env, *action]`.

        Args:
            observation: `[env, *shape]`; or the leaves by their names, where observations are dicts.
        """
        rows = self._rows(observation)
        for module in self.observation_transforms:
            rows = module(rows)
        self._policy.refresh()  # so that the weights it acts with are the parameters
        return self._taken(self._policy.mode(rows.to(self._dtype)))

    def initial_states(self, num_envs: int) -> list[Tensor]:
        """Return the states with which episodes begin, `[env, *state]`: of transforms that remember, and the policy."""
        pairs: Any = zip(self.observation_transforms, self._remembering, strict=True)
        parts = [module for module, remembers in pairs if remembers]
        parts += [self._policy] if self._policy_remembers else []
        return [part.initial_state(num_envs) for part in parts]

    def _rows(self, observation: Observed) -> Tensor:
        """Return observations as one tensor."""
        return self._space.joined(observation) if isinstance(observation, dict) else observation

    def _taken(self, action: Tensor) -> Tensor:
        """Return what the env takes for the actions of the policy."""
        for module in self.action_transforms:
            action = module(action)
        return action


class RememberingProgram(Program):
    """The program of an agent with a state, which goes in and comes out; see `rlcore.types.StatefulPolicy`.

    The state is that of the policy, or of the one transform that remembers. Where there are several of them, they lie
    flattened side by side: those of the transforms in the order in which observations pass, then that of the policy.

    Args:
        parts: of the agent; on the CPU.
    """

    def __init__(self, parts: AgentParts) -> None:
        super().__init__(parts)
        self._parts = [(state.shape[1:], state.dtype) for state in self.initial_states(1)]

    def forward(  # type: ignore[override]
        self, observation: Observed, state: Tensor, first: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the likeliest actions `[env, *action]`, and the state for the next call, `[env, *state]`.

        Args:
            observation: as for `Program`.
            state: what the call before returned; where `first` is True, whatever stands there.
            first: `[env]`, bool: which observations are the first of an episode.
        """
        states = self._parted(state)
        following: list[Tensor] = []
        rows = self._rows(observation)
        for module, remembers in zip(self.observation_transforms, self._remembering, strict=True):
            if remembers:
                rows, after = module(rows, states[len(following)], first)
                following.append(after)
            else:
                rows = module(rows)
        self._policy.refresh()
        rows = rows.to(self._dtype)
        if self._policy_remembers:
            action, after = self._policy.mode(rows, states[-1], first)
            following.append(after)
        else:
            action = self._policy.mode(rows)
        return self._taken(action), side_by_side(following)

    def _parted(self, state: Tensor) -> list[Tensor]:
        """Return the state of each part."""
        if len(self._parts) == 1:
            return [state]
        columns = torch.split(state, [shape.numel() for shape, _ in self._parts], -1)
        parts = zip(columns, self._parts, strict=True)
        return [column.reshape(-1, *shape).to(dtype) for column, (shape, dtype) in parts]


def exported_program(parts: AgentParts) -> torch.export.ExportedProgram:
    """Return the program of an agent, for any number of envs; one with a state takes and returns that too.

    Raises:
        ConfigError: a part of the agent cannot be a part of a program; names it.
    """
    states = Program(parts).initial_states(EXAMPLES)
    program = (RememberingProgram if states else Program)(parts).eval()
    space = parts.spec.observation_space
    observation = observed(space, torch.from_numpy(examples(space, EXAMPLES)))
    example: list[Observed] = [observation]
    if states:
        example += [side_by_side(states), torch.ones(EXAMPLES, dtype=torch.bool)]
    env = {0: torch.export.Dim("env", min=1)}
    shapes: dict[str, Any] = dict.fromkeys(INPUTS[: len(example)], env)
    if isinstance(observation, dict):
        shapes["observation"] = dict.fromkeys(observation, env)
    try:
        return torch.export.export(program, tuple(example), dynamic_shapes=shapes)
    except FROM_OUTSIDE:
        raise
    except Exception as error:
        reason = describe(error).strip().splitlines()[0]
        raise ConfigError(
            f"{parts.labels['model']} cannot be exported: its policy's mode(observation) is not what torch.export can "
            f"follow ({reason}); the format safetensors has no need of it"
        ) from error


def observed(space: Any, rows: Tensor) -> Observed:
    """Return observations as a program takes them: those that are dicts by leaf, of rows `[env, words]`."""
    if not isinstance(space, Packed):
        return rows
    return {name: tensor.contiguous() for name, tensor in space.tensors(rows).items()}


def state_of(parts: AgentParts) -> dict[str, Any]:
    """Return what a file says of the state of its program, `[*state]` and its dtype; nothing where it has none.

    Raises:
        ConfigError: a transform cannot be a part of a program; names it.
    """
    states = Program(parts).initial_states(1)
    if not states:
        return {}
    state = side_by_side(states)
    return {"state": list(state.shape[1:]), "state_dtype": str(state.dtype).removeprefix("torch.")}


def side_by_side(states: list[Tensor]) -> Tensor:
    """Return states `[env, *state]` as one: the only one as it is, several flattened one after the other."""
    return states[0] if len(states) == 1 else torch.cat([state.flatten(1) for state in states], -1)


def program_dtype(space: Any) -> np.dtype[Any]:
    """Return the dtype of the observations that a program takes: that of the space, if torch can count with it.

    Floats that hold them take the place of wide unsigned integers, with which it cannot.
    """
    dtype: np.dtype[Any] = np.dtype(space.dtype)
    return np.result_type(dtype, np.float32) if dtype.kind == "u" and dtype.itemsize > 1 else dtype


def torch_dtype(dtype: Any) -> torch.dtype:
    """Return torch's dtype of the same name."""
    return torch.from_numpy(np.zeros(0, dtype)).dtype


def examples(space: Any, count: int) -> Any:
    """Return observations to try a program with, `[count, *shape]`: of a space, and of a usual size."""
    generator = np.random.default_rng(0)
    if np.dtype(space.dtype).kind == "f":
        values = generator.standard_normal((count, *space.shape))
        return np.clip(values, space.low, space.high).astype(program_dtype(space))
    space.seed(0)
    return np.stack([np.asarray(space.sample()) for _ in range(count)]).astype(program_dtype(space))


def _observation_module(transform: Transform, label: str) -> nn.Module:
    if defines(transform, Transform.memory_module):
        return transform.memory_module()  # type: ignore[return-value]  # a module, which no protocol can say
    if defines(transform, Transform.observation_module):
        return transform.observation_module()
    raise ConfigError(
        f"{label} cannot be exported: it changes observations, and has neither observation_module() nor "
        "memory_module(); the format safetensors has no need of it"
    )


def _action_module(transform: Transform, label: str) -> nn.Module:
    if defines(transform, Transform.action_module):
        return transform.action_module()
    raise ConfigError(
        f"{label} cannot be exported: it changes actions, and has no action_module(); the format safetensors has no "
        "need of it"
    )
