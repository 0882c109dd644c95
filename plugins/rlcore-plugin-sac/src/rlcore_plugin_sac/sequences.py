"""Minibatches of sequences as rows of single steps, for the losses of actors and critics that have memories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

import torch
from rlcore_plugin_replay.sequence_keys import BOOTSTRAP, READ
from rlcore_plugin_replay.td_errors import WEIGHT
from torch import Tensor

from rlcore.types import FIRST, MASK, POLICY_STATE, Key

_OF_STEPS: Final = frozenset((*READ, WEIGHT)) - {POLICY_STATE}


class Unrolled(Protocol):
    """A part with memory, whose head takes what its memory makes of observations.

    Attributes:
        head: of `[sample, size]`.
    """

    head: Any

    def known(self, observation: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return what the memory makes of observations over time, `[time, sequence, size]`.

        Args:
            observation: `[time, sequence, *shape]`.
            state: that is carried, before the first row, `[sequence, *state]`.
            first: which observations begin an episode, `[time, sequence, 1]`.
        """
        ...

    def after(self, observation: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return the carried state with that of this memory after the last row, without gradients."""
        ...


class SequenceRows(Mapping[Key, Tensor]):
    """The rows behind the burn-in of a minibatch of sequences, as samples `[sample, ...]`, the first time first.

    Noise, which a learner samples for each step of the minibatch, is cut likewise.

    Args:
        minibatch: entries `[time, sequence, ...]` as the buffer `replay:sequences` has them, and the noise of the loss.
        burn_in: rows at the beginning that only bring the memories up to date.

    Attributes:
        mask: which samples are trained on, `[sample, 1]`.
        count: how many are, 0-d, at least 1.
    """

    def __init__(self, minibatch: Mapping[Key, Tensor], burn_in: int) -> None:
        self._minibatch = minibatch
        self._burn_in = burn_in
        self._known: dict[str, Tensor] = {}
        self._sequences = minibatch[POLICY_STATE].shape[0]
        self.mask = self[MASK]
        self.count = self.mask.sum().clamp(min=1)

    def __getitem__(self, key: Key) -> Tensor:
        value = self._minibatch[key]
        if key in _OF_STEPS:
            return value[self._burn_in :].flatten(0, 1)
        skipped = self._burn_in * self._sequences
        if key in ("noise", ("next", "noise")):
            return value[skipped:]
        if isinstance(key, str) and key.startswith("dropout_"):
            return value[:, :, skipped:]
        return value

    def __iter__(self) -> Iterator[Key]:
        return iter(self._minibatch)

    def __len__(self) -> int:
        return len(self._minibatch)

    def get(self, key: Key, default: Any = None) -> Any:
        """Return an entry, or `default` where there is none; what every buffer of sequences writes is there."""
        if key not in READ and self._minibatch.get(key, None) is None:
            return default
        return self[key]

    def known(self, name: str, part: Unrolled, following: bool, moved: bool) -> Tensor:
        """Return what the memory of a part knows, `[sample, size]`.

        A memory goes through the sequences once, whoever asks. It does so with gradients also where none is wanted: the
        kernels are then the same, and so are the bits of a loss, whichever others are computed beside it.

        Args:
            name: of the part.
            part: itself.
            following: of the observations to which the joined steps lead, instead of those before; without gradients.
            moved: whether what is known of those before has gradients.
        """
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._unroll(part)
        if not following:
            return (known if moved else known.detach()).flatten(0, 1)
        row = self._minibatch[BOOTSTRAP][self._burn_in :].squeeze(-1) - self._burn_in
        sequence = torch.arange(self._sequences, device=row.device)
        return known.detach()[row, sequence].flatten(0, 1)

    def mean(self, values: Tensor) -> Tensor:
        """Return the sum over the trained samples of values `[..., sample, 1]`, by how many these are, 0-d."""
        return torch.where(self.mask, values, 0).sum() / self.count

    def over_time(self, values: Tensor) -> Tensor:
        """Return values `[sample, 1]` as `[time, sequence, 1]`: 0 where nothing is trained on, as in the burn-in."""
        steps = self._minibatch[FIRST].shape[0] - self._burn_in
        trained = torch.where(self.mask, values, 0).view(steps, self._sequences, 1)
        return torch.cat([trained.new_zeros(self._burn_in, *trained.shape[1:]), trained])

    def _unroll(self, part: Unrolled) -> Tensor:
        """Return what a memory knows in the rows behind the burn-in, `[time, sequence, size]`."""
        state = self._minibatch[POLICY_STATE]
        observation, first, burn_in = self._minibatch["observation"], self._minibatch[FIRST], self._burn_in
        if burn_in:
            with torch.no_grad():
                state = part.after(observation[:burn_in], state, first[:burn_in])
        with torch.enable_grad():
            return part.known(observation[burn_in:], state, first[burn_in:])
