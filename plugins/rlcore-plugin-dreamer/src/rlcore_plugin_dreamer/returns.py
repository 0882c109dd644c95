"""Lambda-returns, and the bounds of returns by whose distance advantages are divided."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def lambda_returns(reward: Tensor, discount: Tensor, value: Tensor, mix: Tensor) -> Tensor:
    """Return `R_t = r_{t+1} + d_{t+1} ((1 - m_{t+1}) v_{t+1} + m_{t+1} R_{t+1})`, `[time, ...]`.

    Args:
        reward: of the steps from each time to the next, `[time, ...]`; so are the others, of where the step leads.
        discount: of what follows: 0 after an end.
        value: estimates.
        mix: how much of the return goes on instead of the value: lambda, or 0 where nothing follows.

    The last return ends in its value, whatever `mix` says.
    """
    following, results = value[-1], []
    for time in range(reward.shape[0] - 1, -1, -1):
        ahead = torch.lerp(value[time], following, mix[time])
        following = torch.addcmul(reward[time], discount[time], ahead)
        results.append(following)
    return torch.stack(results[::-1])


class ReturnBounds(nn.Module):
    """The 5th and the 95th percentile of returns, as a moving average that begins at 0.

    Attributes:
        bounds: both, `[2]`, saved with the model.
    """

    bounds: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("bounds", torch.zeros(2))

    @torch.no_grad()
    def moved(self, returns: Tensor, counts: Tensor, rate: float) -> Tensor:
        """Return the averages `[2]` with these returns, and leave the own ones as they are.

        Args:
            returns: `[...]`.
            counts: which of them count, bool, `[...]`. Where none does, nothing moves.
            rate: how far the averages move.
        """
        if not returns.numel():
            return self.bounds.clone()
        shown = torch.where(counts, returns, torch.nan).flatten()
        # one after the other: a tensor of both shares would be copied from the host in each update
        latest = torch.stack([torch.nanquantile(shown, share) for share in (0.05, 0.95)])
        moved = torch.lerp(self.bounds, latest, rate)
        return torch.where(moved.isnan(), self.bounds, moved)
