"""A tree of sums over priorities: sampling in proportion to them, and changing some, in a few tensor operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor

FANOUT: Final = 32
BITS: Final = 5  # of a place within its group
JUST_BELOW_ONE: Final = 1 - 2.0**-52


class SumTree:
    """Numbers that are not negative, with the sums of every 32, of every 32 sums, and so on; float64.

    A million numbers make four levels, so a sample is four rounds over `[sample, 32]`. Sums are taken again from what
    they are sums of, so no error adds up.

    Args:
        size: how many numbers; all begin as 0.
        device: where they lie.
    """

    def __init__(self, size: int, device: torch.device) -> None:
        self._levels: list[Tensor] = []
        groups = size
        while groups > 1 or not self._levels:
            groups = -(-groups // FANOUT)
            self._levels.append(torch.zeros(groups, FANOUT, dtype=torch.float64, device=device))

    def __getitem__(self, index: Tensor) -> Tensor:
        """Return the numbers at places `[sample]`."""
        return self._levels[0].view(-1).index_select(0, index)

    def __setitem__(self, index: Tensor, values: Tensor) -> None:
        """Set the numbers at places `[sample]`; of a place that is named twice, one of its values stays."""
        self._levels[0].view(-1)[index] = values.to(torch.float64)
        for lower, upper in zip(self._levels, self._levels[1:], strict=False):
            index = index >> BITS
            upper.view(-1)[index] = lower.index_select(0, index).sum(1)

    def draw(self, uniform: Tensor) -> Tensor:
        """Return places, int64 `[sample]`, in proportion to their numbers; one whose number is 0 is never sampled.

        Args:
            uniform: float64 `[sample]` in [0, 1).
        """
        place = torch.zeros_like(uniform, dtype=torch.int64)
        rest = uniform * self._levels[-1].sum()
        edges = uniform.new_zeros(len(uniform), FANOUT + 1)
        # only on the CPU is `cumsum` deterministic, and never falling where sums are rounded
        write_sums = _write_running_sums if uniform.is_cpu else write_sums_in_one_order
        for level in reversed(self._levels):
            write_sums(level.index_select(0, place), edges[:, 1:])
            # the level above rounded differently; at the very edge, what is left must still fall inside
            rest = torch.minimum(rest, edges[:, -1] * JUST_BELOW_ONE)
            child = torch.searchsorted(edges, rest.unsqueeze(1), right=True) - 1
            rest = rest - edges.gather(1, child).squeeze(1)
            place = (place << BITS) + child.squeeze(1)
        return place

    def state_dict(self) -> dict[str, Any]:
        """Return all levels: sums that were taken again could differ in their last bit."""
        return {"levels": list(self._levels)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set all levels."""
        for level, saved in zip(self._levels, state["levels"], strict=True):
            level.copy_(saved)


def _write_running_sums(numbers: Tensor, sums: Tensor) -> None:
    torch.cumsum(numbers, 1, out=sums)


def write_sums_in_one_order(numbers: Tensor, sums: Tensor) -> None:
    """Write the sums up to each of the numbers `[sample, number]`, that one included, on any device.

    Each adds all numbers in the same order, those behind its own as 0. So where a number is 0 its sum is that before
    it, to the bit.
    """
    up_to_each = numbers.new_ones(numbers.shape[1], numbers.shape[1]).tril()
    torch.sum(numbers.unsqueeze(1) * up_to_each, 2, out=sums)
