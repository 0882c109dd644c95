"""The random generators of one env: VMAS draws from the global ones, which are everybody's."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from vmas.simulator.environment import Environment

from rlcore.state import untouched_generators


class Generators:
    """Stands in for the global generators while VMAS runs, so that no env disturbs another one or the run.

    Args:
        device: of the tensors that are drawn.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.seed(0)

    def seed(self, seed: int) -> None:
        """Begin where VMAS begins with a seed."""
        # as `Environment.vmas_random_state`
        self._states: list[Any] = [
            torch.Generator().manual_seed(seed).get_state(),
            np.random.RandomState(seed % 2**32).get_state(),
            random.Random(seed).getstate(),
        ]
        on_cuda = self._device.type == "cuda"
        self._cuda = torch.Generator(self._device).manual_seed(seed).get_state() if on_cuda else None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let VMAS draw from these generators, and make tensors that it may write to later."""
        shared = Environment.vmas_random_state  # of all envs of the process
        with untouched_generators(), torch.inference_mode(False), torch.no_grad():
            shared[:] = self._states
            if self._cuda is not None:
                torch.cuda.set_rng_state(self._cuda, self._device)
            yield
            self._states = list(shared)
            if self._cuda is not None:
                self._cuda = torch.cuda.get_rng_state(self._device)

    def state_dict(self) -> dict[str, Any]:
        """Return where they stand, in arrays."""
        words, numpy_state, (version, python, gauss) = self._states
        return {
            "torch": words.numpy(),
            "numpy": list(numpy_state),
            "python": [version, np.array(python), gauss],
            "cuda": None if self._cuda is None else self._cuda.numpy(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there; on a device of another kind those of the device go on as they are."""
        version, python, gauss = state["python"]
        python_state = (version, tuple(np.asarray(python).tolist()), gauss)
        self._states = [torch.from_numpy(state["torch"].copy()), tuple(state["numpy"]), python_state]
        if self._cuda is not None and state["cuda"] is not None:
            self._cuda = torch.from_numpy(state["cuda"].copy())
