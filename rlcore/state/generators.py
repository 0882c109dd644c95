"""The global random generators of Python, NumPy and torch: seeding them, and their state for checkpoints.

The parts of rlcore have generators of their own; code of users and plugins draws from the global ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


def seed_all(seed: int) -> None:
    """Seed every global generator."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # the largest seed that NumPy takes; torch takes 64 bits
    torch.manual_seed(seed)


class GlobalGenerators:
    """Saves and restores the global generators, as a part of a checkpoint."""

    def state_dict(self) -> dict[str, Any]:
        """Return the states of the generators of Python, NumPy and torch, with those of CUDA devices in use."""
        version, words, next_gauss = random.getstate()
        return {
            "python": [version, np.array(words, dtype=np.int64), next_gauss],
            "numpy": np.random.get_state(legacy=False),
            "torch": torch.get_rng_state(),
            # while CUDA is not in use, its generators are as seeded; asking starts it, which a forked process cannot
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],  # type: ignore[no-untyped-call]
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the state of every generator."""
        version, words, next_gauss = state["python"]
        random.setstate((version, tuple(words.tolist()), next_gauss))
        np.random.set_state(state["numpy"])
        torch.set_rng_state(state["torch"].clone())
        if torch.cuda.is_available():
            # a machine with fewer devices can go on with the run
            for index, generator in enumerate(state["cuda"][: torch.cuda.device_count()]):
                torch.cuda.set_rng_state(generator.clone(), index)


@contextmanager
def untouched_generators() -> Iterator[None]:
    """Restore the global generators at the end of a block."""
    generators = GlobalGenerators()
    state = generators.state_dict()
    try:
        yield
    finally:
        generators.load_state_dict(state)
