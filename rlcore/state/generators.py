"""The global random generators of Python, NumPy and torch: seeding them, and their state for checkpoints.

rlcore's own parts have generators of their own; these are kept for what users and plugins take from them.
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
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


class GlobalGenerators:
    """The state of the global generators."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state of Python's, NumPy's and torch's generators, the latter on every device in use."""
        version, words, next_gauss = random.getstate()
        return {
            "python": [version, np.array(words, dtype=np.int64), next_gauss],
            "numpy": np.random.get_state(legacy=False),
            "torch": torch.get_rng_state(),
            # where CUDA is not in use its generators are as seeded, and a forked process cannot ask for them
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],  # type: ignore[no-untyped-call]
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the state of every generator."""
        version, words, next_gauss = state["python"]
        random.setstate((version, tuple(words.tolist()), next_gauss))
        np.random.set_state(state["numpy"])
        torch.set_rng_state(state["torch"].clone())
        if torch.cuda.is_available():
            # one device fewer than in the run before is no reason to end
            for index, generator in enumerate(state["cuda"][: torch.cuda.device_count()]):
                torch.cuda.set_rng_state(generator.clone(), index)


@contextmanager
def untouched_generators() -> Iterator[None]:
    """Put the global generators back to where they were."""
    generators = GlobalGenerators()
    state = generators.state_dict()
    try:
        yield
    finally:
        generators.load_state_dict(state)
