"""An agent whose policy is an exported program, with everything inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from rlcore.errors import FROM_OUTSIDE, NotSupportedError, StorageError, describe
from rlcore_plugin_agents.agent import Agent
from rlcore_plugin_agents.notes import spec_of
from rlcore_plugin_agents.program import observed, program_dtype, torch_dtype

# those of a state
_DTYPES: Final = {"float32": torch.float32, "float64": torch.float64}


class _ProgramPolicy:
    """Acts by a program, which has the likeliest action alone."""

    def __init__(self, path: Path, program: Callable[..., Any], space: Any) -> None:
        self._path = path
        self._program = program
        self._space = space
        self._dtype = torch_dtype(program_dtype(space))

    def refresh(self) -> None:
        """Do nothing: the weights stay as they are."""

    def mode(self, observation: Tensor) -> Tensor:
        """Return the actions for observations `[env, *shape]`."""
        return self._run(observation)  # type: ignore[no-any-return]

    def _run(self, observation: Tensor, *state: Tensor) -> Any:
        try:
            return self._program(observed(self._space, observation.to(self._dtype)), *state)
        except FROM_OUTSIDE:
            raise
        except Exception as error:
            raise StorageError(f"{str(self._path)!r} cannot be run: {describe(error)}") from error

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Refuse: nothing is sampled here.

        Raises:
            NotSupportedError: always.
        """
        raise NotSupportedError(
            f"{str(self._path)!r} has the likeliest action alone; to sample, load the run or a safetensors export"
        )

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return the actions, which no noise changes."""
        return self.mode(observation), noise

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return nothing."""
        return {}


class _RememberingProgramPolicy(_ProgramPolicy):
    """Acts by a program that takes a state and returns the next one.

    Args:
        state: any state of one env, on the device of the program.
    """

    def __init__(self, path: Path, program: Callable[..., Any], space: Any, state: Tensor) -> None:
        super().__init__(path, program, space)
        self._state = state

    def initial_state(self, num_envs: int) -> Tensor:
        """Return zeros, in whose place the program begins with what it knows of beginnings."""
        return self._state.new_zeros(num_envs, *self._state.shape)

    def mode(self, observation: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Return the actions, and the next state."""
        return self._run(observation, state, first)  # type: ignore[no-any-return]

    def act(  # type: ignore[override]
        self, observation: Tensor, noise: Tensor, state: Tensor, first: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the actions, which no noise changes, and the next state."""
        action, following = self._run(observation, state, first)
        return action, noise, following


def program_agent(
    path: Path, notes: Mapping[str, Any], program: Callable[..., Any], device: torch.device, seed: int
) -> Agent:
    """Return the agent of a program.

    Args:
        path: of its file, for messages.
        notes: what the file says of itself.
        program: from raw observations, as `observed` returns them, to actions, on `device`; where the notes name a
            state, from that and `first` `[env]` too, to actions and the next state.
        device: of the program.
        seed: of nothing so far, as programs do not sample.

    Raises:
        StorageError: the file does not say of which spaces the env is.
    """
    spec = spec_of(path, notes)
    space = spec.observation_space
    dtype = program_dtype(space)
    policy = (
        _RememberingProgramPolicy(path, program, space, _state_of(path, notes, device))
        if "state" in notes
        else _ProgramPolicy(path, program, space)
    )
    return Agent(spec, [], policy, device, seed, int(notes["frames"]), dtype)


def _state_of(path: Path, notes: Mapping[str, Any], device: torch.device) -> Tensor:
    """Return a state of one env, of the shape and dtype that a file says, which anyone may have written.

    Raises:
        StorageError: they are none.
    """
    state, dtype = notes["state"], str(notes.get("state_dtype", "float32"))
    if dtype in _DTYPES and isinstance(state, list) and all(isinstance(size, int) and size > 0 for size in state):
        return torch.zeros(state, dtype=_DTYPES[dtype], device=device)
    raise StorageError(f"{str(path)!r}: what it says of the state of its policy is no shape: {state!r}, {dtype}")
