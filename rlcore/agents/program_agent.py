"""An agent whose policy is an exported program, with everything inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlcore.agents.agent import Agent
from rlcore.agents.notes import spec_of
from rlcore.agents.program import program_dtype, torch_dtype
from rlcore.errors import FROM_OUTSIDE, NotSupportedError, StorageError, describe


class _ProgramPolicy:
    """Acts by a program, which has the likeliest action alone."""

    def __init__(self, path: Path, program: Callable[[Tensor], Tensor], dtype: torch.dtype) -> None:
        self._path = path
        self._program = program
        self._dtype = dtype

    def refresh(self) -> None:
        """Do nothing: the weights stay as they are."""

    def mode(self, observation: Tensor) -> Tensor:
        """Return the actions for observations `[env, *shape]`."""
        try:
            return self._program(observation.to(self._dtype))
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


def program_agent(
    path: Path, notes: Mapping[str, Any], program: Callable[[Tensor], Tensor], device: torch.device, seed: int
) -> Agent:
    """Return the agent of a program.

    Args:
        path: of its file, for messages.
        notes: what the file says of itself.
        program: from raw observations `[env, *shape]` to actions, on `device`.
        device: of the program.
        seed: of nothing so far, as programs do not sample.

    Raises:
        StorageError: the file does not say of which spaces the env is.
    """
    spec = spec_of(path, notes)
    dtype = program_dtype(spec.observation_space)
    return Agent(spec, [], _ProgramPolicy(path, program, torch_dtype(dtype)), device, seed, int(notes["frames"]), dtype)
