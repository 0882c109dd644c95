"""What is random in a loss: sampled by the learner, and read by the loss as entries of the minibatch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.learners import rows_of
from rlcore.types import Context, FoundEntries, Key, Loss, Rows, defines

if TYPE_CHECKING:
    from rlcore.learners import Minimise, Turn


class NoisyMinibatch(FoundEntries):
    """A minibatch with the noise of its update, for the loss alone: hooks and the buffer go on with the one without.

    Entries are read from the minibatch when they are asked for, so that one that gathers gathers no more than before.

    Args:
        minibatch: a `Minibatch`, a TensorDict or a mapping.
        noise: further entries.
    """

    def __init__(self, minibatch: Any, noise: Mapping[Key, Tensor]) -> None:
        super().__init__(noise)
        self._minibatch = minibatch
        self._noise = noise

    def __missing__(self, key: Key) -> Tensor:
        value: Tensor = self._minibatch[key]
        self[key] = value
        return value

    @property
    def rows(self) -> Rows | None:
        """Where the rows of the minibatch lie, see `FoundEntries`."""
        return self._minibatch.rows if isinstance(self._minibatch, FoundEntries) else None

    @property
    def batch_size(self) -> torch.Size:
        """`[sample]`, as a TensorDict has it."""
        return torch.Size([rows_of(self._minibatch)])

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or holds(self._minibatch, key)

    def keys(self) -> Any:
        """Return every key that can be read."""
        return dict.fromkeys((*self._minibatch.keys(), *self._noise)).keys()


def holds(minibatch: Any, key: Any) -> bool:
    """Return whether a minibatch has an entry; a TensorDict does not answer `in`."""
    return key in minibatch if isinstance(minibatch, dict) else minibatch.get(key, None) is not None


class LossNoise:
    """Samples what is random in a loss, once for each update.

    Alone, the samples come from one generator. In a group, each rank has other rows and needs other noise, yet the
    state of a learner is the same on all: there the generator only gives each update a seed, the same on all ranks,
    from which and its number a rank seeds the generator that it samples from.

    Args:
        loss: with `sample_noise`.
        context: of the learner.
    """

    def __init__(self, loss: Loss, context: Context) -> None:
        self._loss = loss
        self._rank = context.group.rank
        self._generator = context.generator("noise")
        self._of_rank: torch.Generator | None = None
        if context.group.size > 1:
            # on the CPU, since the seed of each update is read here
            self._of_rank = self._generator
            self._generator = torch.Generator().manual_seed(context.seed("noise"))

    def around(self, minimise: Minimise, learner: Any) -> Minimise:
        """Return what minimises losses with noise, which all turns of an update share."""

        def minimise_with_noise(turn: Turn) -> Mapping[str, Tensor]:
            if turn.entries is turn.minibatch:
                turn.entries = self.add_to(turn.minibatch)
            return minimise(turn)

        return minimise_with_noise

    def __call__(self, rows: int) -> Mapping[Key, Tensor]:
        """Return the entries of an update of so many samples."""
        generator = self._generator
        if self._of_rank is not None:
            seed = int(torch.randint(2**62, (), generator=generator))
            generator = self._of_rank.manual_seed(seed + self._rank)
        noise: object = self._loss.sample_noise(rows, generator)
        if not isinstance(noise, Mapping):
            raise ConfigError(
                f"[loss] sample_noise of {type(self._loss).__name__} returned a {type(noise).__name__}; return a dict "
                'of entries, as {"noise": tensor}, which the loss reads from its minibatch'
            )
        return noise

    def add_to(self, minibatch: Mapping[Key, Tensor]) -> NoisyMinibatch:
        """Sample for a minibatch, and return it with the noise.

        Raises:
            ConfigError: the minibatch has an entry of that name already.
        """
        noise = self(rows_of(minibatch))
        for key in noise:
            if holds(minibatch, key):
                raise ConfigError(
                    f"[loss] sample_noise of {type(self._loss).__name__} returns an entry {key!r}, which the minibatch "
                    "has already; give the noise a name of its own"
                )
        return NoisyMinibatch(minibatch, noise)

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the generator."""
        return {"generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the position of the generator."""
        self._generator.set_state(state["generator"])


def noise_of(loss: Any, context: Context) -> LossNoise | None:
    """Return what samples the noise of a loss; None for one without `sample_noise`."""
    return LossNoise(loss, context) if defines(loss, Loss.sample_noise) else None
