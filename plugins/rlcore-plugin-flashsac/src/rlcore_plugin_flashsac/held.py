"""Noise that is held for several steps, of which nothing is remembered (Kim et al., 2026, arXiv 2604.04539).

A policy has nothing between two batches but its generator. So intervals of one noise are laid from their last step
back: each step has random numbers of its own, and those of the last step of an interval say how long it was. Which
steps are the last ones follows from the numbers that the generator gives next, which a copy of it tells. Intervals laid
back have the law of those laid forward, and a resumed run goes on in the middle of one. In a batch of random actions
the generator gives others besides, so that intervals begin with the first batch without any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from rlcore_plugin_sac.policy import SamplingPolicy
from torch import Tensor

if TYPE_CHECKING:
    from rlcore.types import Array


class Ahead:
    """What a generator gives next in calls of one shape, `[time, env, number]` of standard normal numbers.

    It saves time alone: a new one at the same state of the generator tells the same.

    Args:
        shape: of each call.
        generator: gives the numbers.

    Attributes:
        calls: what the next ones give, at least one.
    """

    def __init__(self, shape: tuple[int, ...], generator: torch.Generator) -> None:
        self._shape = shape
        self._now = self._told = generator.get_state()
        self.calls: list[Tensor] = []
        self.tell(1, generator.device)

    def fits(self, shape: tuple[int, ...], generator: torch.Generator) -> bool:
        """Return whether it tells the calls of a shape of a generator that is where it is."""
        return shape == self._shape and torch.equal(generator.get_state(), self._now)

    def tell(self, calls: int, device: torch.device) -> None:
        """Add further calls."""
        copy = torch.Generator(device)
        copy.set_state(self._told)
        self.calls += [torch.randn(self._shape, generator=copy, device=device) for _ in range(calls)]
        self._told = copy.get_state()

    def move(self, generator: torch.Generator) -> None:
        """Let the generator give the first call, which is not told any more."""
        torch.randn(self._shape, generator=generator, device=generator.device)
        self._now = generator.get_state()
        del self.calls[0]
        if not self.calls:  # for no env, one call is enough
            self.tell(1, generator.device)


class HeldNoise:
    """Standard normal noise that each env holds for a number of steps of its own; `k` steps are as likely as `1 / k^2`.

    Args:
        longest: the largest number of steps.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        weights = 1 / np.arange(1, longest + 1) ** 2.0
        shares = torch.from_numpy(np.cumsum(weights / weights.sum())[:-1])
        self._bounds = torch.special.ndtri(shares)  # between normal numbers of different lengths
        self._ahead: Ahead | None = None

    def draw(self, steps: int, num_envs: int, size: int, generator: torch.Generator) -> Tensor:
        """Return noise `[time, env, size]`; the generator moves on by the numbers of these steps alone."""
        shape, device = (steps, num_envs, size + 1), generator.device
        if self._ahead is None or not self._ahead.fits(shape, generator):
            self._ahead = Ahead(shape, generator)
        while True:
            drawn = torch.cat(self._ahead.calls)
            lengths = torch.bucketize(drawn[..., -1].double().cpu(), self._bounds) + 1
            last = last_steps(lengths.numpy(), steps, self._longest)
            if last is not None:
                break
            self._ahead.tell(-(-self._longest // steps), device)
        self._ahead.move(generator)
        return drawn[torch.from_numpy(last).to(device), torch.arange(num_envs, device=device), :-1]


def last_steps(lengths: Array, steps: int, longest: int) -> Array | None:
    """Return the last step of the interval that each of the first steps is in, `[step, env]`.

    Args:
        lengths: of the interval that each step would be the last one of, `[later step, env]`.
        steps: how many are asked for.
        longest: the largest length.

    Returns:
        None where later steps than there are would have a say.
    """
    count = len(lengths)
    number = np.arange(count)[:, None]
    begin = number - lengths + 1
    # a step that no later one reaches back to is a last one, whatever comes
    reached = np.minimum.accumulate(np.r_[begin[1:], np.full_like(begin[:1], count - longest + 1)][::-1])[::-1]
    if not (number < reached)[steps - 1 :].any(0).all():
        return None
    last = np.empty_like(lengths)
    current: Any = np.full(lengths.shape[1], count)
    begun: Any = current
    for step in reversed(range(count)):
        ends = step < begun
        current, begun = np.where(ends, step, current), np.where(ends, begin[step], begun)
        last[step] = current
    return last[:steps]


class HoldingPolicy(SamplingPolicy):
    """A `SamplingPolicy` that holds its noise while it collects.

    Args:
        held: the noise.
        arguments: of `SamplingPolicy`.
    """

    def __init__(self, held: HeldNoise, *arguments: Any) -> None:
        self._held = held
        super().__init__(*arguments)

    def _normal(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        return self._held.draw(steps, num_envs, self._box.size, generator)
