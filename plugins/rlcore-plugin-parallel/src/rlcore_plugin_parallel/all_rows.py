"""Acting on the observations of all workers at once, so that results do not depend on how many workers there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rlcore.collectors import Acting


class AllRows:
    """A policy that acts on the rows of all envs, and gives those of a share of them.

    The bits of a product of matrices, or of a sum, depend on the number of rows. What stands in the rows of other
    workers does not matter, and may change meanwhile.

    Args:
        policy: acts on `[env, ...]`.
        share: the envs whose actions are wanted.
    """

    def __init__(self, policy: Acting, share: slice) -> None:
        self._policy = policy
        self._share = share
        self._actions: list[Tensor] = []

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return the actions of the share, and what `describe` needs of all envs."""
        action, parameters = self._policy.act(observation, noise)
        self._actions.append(action)
        return action[self._share], parameters

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[Any, Tensor]:
        """Return the entries of the share `[time, env, ...]`; the actions are those of the calls of `act`."""
        whole = torch.stack(self._actions).to(parameters.device)
        self._actions.clear()
        described = self._policy.describe(parameters, whole)
        return {name: value[:, self._share] for name, value in described.items()}
