"""What a transform of one leaf is in an exported policy: the module of the transform, put on that leaf of the rows."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from rlcore.envs.packed import Packed


class LeafModule(nn.Module):
    """Rows `[env, words]` to rows with one leaf as a module leaves it.

    Args:
        module: from the leaf `[env, *shape]` to what takes its place.
        leaf: the name of the leaf.
        before: the space of the rows that come in.
        after: the space of those that go out.
    """

    def __init__(self, module: nn.Module, leaf: str, before: Packed, after: Packed) -> None:
        super().__init__()
        self.module = module
        self._leaf = leaf
        self._before, self._after = before, after

    def forward(self, observation: Tensor) -> Tensor:
        """Return the changed rows."""
        leaves = self._before.tensors(observation)
        return self._after.joined({**leaves, self._leaf: self.module(leaves[self._leaf])})


class LeafMemoryModule(LeafModule):
    """The same of a module whose memory goes in and comes out; see `rlcore.types.exports.ModuleWithMemory`."""

    def initial_state(self, num_envs: int) -> Tensor:
        """Return that of the module."""
        module: Any = self.module
        return module.initial_state(num_envs)  # type: ignore[no-any-return]

    def forward(  # type: ignore[override]
        self, observation: Tensor, state: Tensor, first: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the changed rows, and the state for the next call."""
        leaves = self._before.tensors(observation)
        changed, following = self.module(leaves[self._leaf], state, first)
        return self._after.joined({**leaves, self._leaf: changed}), following
