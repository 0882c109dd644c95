"""Exploration by noise that is held for several steps."""

from __future__ import annotations

from typing import Any

import torch
from rlcore_plugin_sac.box import ActionBox
from rlcore_plugin_sac.policy import SamplingPolicy
from torch import Tensor, nn

from rlcore.types import Context


class HeldNoise(nn.Module):
    """The noise that each env holds, and for how many steps more; buffers, so that a resume goes on with them.

    The number of steps has the zeta distribution, `n ** -exponent`, cut at a longest number (FlashSAC, arXiv
    2604.04539, section 4.3, after Dabney et al., 2021, arXiv 2006.01782).

    Args:
        num_envs: how many envs hold noise.
        actions: numbers of an action.
        exponent: of the distribution.
        longest: the most steps.
    """

    noise: Tensor
    left: Tensor
    below: Tensor

    def __init__(self, num_envs: int, actions: int, exponent: float, longest: int) -> None:
        super().__init__()
        weights = torch.arange(1, longest + 1, dtype=torch.float64) ** -exponent
        self.register_buffer("noise", torch.zeros(num_envs, actions))
        self.register_buffer("left", torch.zeros(num_envs, 1, dtype=torch.int64))
        self.register_buffer("below", (weights / weights.sum()).cumsum(0).float()[:-1], persistent=False)

    @torch.no_grad()
    def draw(self, steps: int, generator: torch.Generator) -> Tensor:
        """Return the noise of the next steps, `[time, env, action]`, and hold what goes on after them."""
        shape, device = (steps, *self.noise.shape), generator.device
        fresh = torch.randn(shape, generator=generator, device=device)
        lengths = 1 + torch.bucketize(
            torch.rand(*shape[:2], 1, generator=generator, device=device), self.below.to(device), right=True
        )
        rows = []
        for new, length in zip(fresh, lengths, strict=True):
            over = self.left == 0
            self.noise.copy_(torch.where(over, new, self.noise))
            self.left.copy_(torch.where(over, length, self.left) - 1)
            rows.append(self.noise.clone())
        return torch.stack(rows)


class HoldingPolicy(SamplingPolicy):
    """A `SamplingPolicy` of which the noise is held.

    Args:
        actor: with a method `raw`.
        box: of the actions.
        random_frames: frames in the beginning with uniform actions.
        context: of the model.
        held: the noise.
    """

    def __init__(self, actor: Any, box: ActionBox, random_frames: int, context: Context, held: HeldNoise) -> None:
        self._held = held
        super().__init__(actor, box, random_frames, context)

    def _normal(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        return self._held.draw(steps, generator)
