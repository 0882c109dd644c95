"""Random numbers from counters: each follows from the seed of its env, the step, and its place among those of a step.

So what an env does depends neither on the device, nor on how many envs there are beside it, nor on whether the steps
are compiled. A generator gives numbers to whoever asks first.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import Tensor

_WORD: Final = 0xFFFFFFFF
# multipliers of a mixing function of 32-bit words with little bias (Wellons, "Prospecting for Hash Functions", 2018);
# below 2**31, so that a product with a word stays below 2**63: the overflow of a signed number is not defined in C++,
# to which steps may be compiled
_FIRST: Final = 0x21F0AAAD
_SECOND: Final = 0x735A2D97
# a step of the golden ratio, which spreads numbers that follow each other
_GOLDEN: Final = 0x1E3779B9
# float32 has so many bits
_BITS: Final = 24


def keys_of(seed: int, num_envs: int, device: torch.device) -> Tensor:
    """Return the keys of envs, two words `[env, 2]`, int64; those of env `i` follow from `seed + i`."""
    seeds = torch.arange(num_envs, dtype=torch.int64) + (seed & (2**62 - 1))
    words = torch.stack([seeds & _WORD, seeds >> 32], dim=-1)
    first = _mixed(_mixed(words[:, 0]) ^ words[:, 1])
    return torch.stack([first, _mixed(first ^ _GOLDEN)], dim=-1).to(device)


class Random:
    """The random numbers of one step of every env. The first that are drawn differ from the second, and so on.

    Args:
        keys: of the envs, `[env, 2]`.
        step: how many steps each env has taken, over all of its episodes, `[env]`, int64.
    """

    def __init__(self, keys: Tensor, step: Tensor) -> None:
        self._first = _mixed((step & _WORD) ^ keys[:, 0])
        self._second = keys[:, 1]
        self._drawn = 0

    def uniform(self, low: float = 0.0, high: float = 1.0, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return numbers `[env, *shape]` from `low` on, below `high`."""
        unit = (self._words(shape) >> (32 - _BITS)).to(dtype) * 2.0**-_BITS
        return unit * (high - low) + low

    def integers(self, high: int, *shape: int) -> Tensor:
        """Return whole numbers `[env, *shape]` from 0 on, below `high`, int64; `high` is at most 2**31."""
        return (self._words(shape) * high) >> 32

    def normal(self, *shape: int) -> Tensor:
        """Return numbers `[env, *shape]` of the standard normal distribution, float32 (Box and Muller, 1958)."""
        radius, angle = self.uniform(0.0, 1.0, 2, *shape).unbind(1)
        return (-2 * torch.log1p(-radius)).sqrt() * torch.cos(2 * math.pi * angle)

    def _words(self, shape: tuple[int, ...]) -> Tensor:
        """Return 32 random bits for each number, in int64."""
        count = math.prod(shape)
        places = torch.arange(self._drawn + 1, self._drawn + 1 + count, device=self._first.device)
        self._drawn += count
        words = (self._first[:, None] + (places * _GOLDEN & _WORD)) & _WORD
        return _mixed(words ^ self._second[:, None]).reshape(-1, *shape)


def _mixed(word: Tensor) -> Tensor:
    """Return a word of 32 bits of which each bit depends on all of the given one; each has another one."""
    word = word ^ (word >> 16)
    word = (word * _FIRST) & _WORD
    word = word ^ (word >> 15)
    word = (word * _SECOND) & _WORD
    return word ^ (word >> 15)
