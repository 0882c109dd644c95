"""Observations of several arrays at the entrance of a network, and the mask of actions at its end."""

from __future__ import annotations

from math import prod
from typing import Any

import gymnasium
import torch
from torch import Tensor, nn

from rlcore.envs import ACTION_MASK, Packed

# the logit or value of what is forbidden: its probability is 0, its product with that too, and nothing is infinite
NEVER = -1e30


class ActionMask:
    """Which actions the observations of a packed space allow.

    Args:
        space: with the leaf `action_mask`.
    """

    def __init__(self, space: Packed) -> None:
        self._space = space

    def allowed(self, observation: Tensor) -> Tensor:
        """Return bool `[..., action]` of observations `[..., words]`."""
        return self._space.tensor(observation, ACTION_MASK) != 0

    def __call__(self, numbers: Tensor, observation: Tensor) -> Tensor:
        """Return logits or values `[..., action]`, with one that is never the best for each forbidden action."""
        return torch.where(self.allowed(observation), numbers, NEVER)


class BitMask(ActionMask):
    """Which values of bits the observations of a packed space allow: `[..., 2 bit]`, of each bit its 0 and its 1."""

    def __call__(self, numbers: Tensor, observation: Tensor) -> Tensor:
        """Return logits of a 1 `[..., bit]`: where one value is forbidden, one that makes the other certain."""
        allowed = self.allowed(observation)
        return torch.where(allowed[..., 1::2], torch.where(allowed[..., ::2], numbers, -NEVER), NEVER)


def mask_of(space: gymnasium.Space[Any], actions: gymnasium.Space[Any]) -> ActionMask | None:
    """Return the mask in observations of a space for the outputs of a network; None where all actions are allowed.

    Args:
        space: of the observations.
        actions: the space of the actions.
    """
    if not isinstance(space, Packed) or not space.choices:
        return None
    return BitMask(space) if isinstance(actions, gymnasium.spaces.MultiBinary) else ActionMask(space)


def seen_space(space: Packed) -> gymnasium.Space[Any]:
    """Return what a network sees of a packed space: all but the mask; of one leaf its space, of several their dict."""
    leaves = {name: leaf for name, leaf in space.leaves.items() if name != ACTION_MASK}
    return next(iter(leaves.values())) if len(leaves) == 1 else gymnasium.spaces.Dict(leaves)


class PackedEncoder(nn.Module):
    """Packed observations `[row, words]` to features `[row, features]`, by an encoder of their leaves.

    Args:
        space: of the observations.
        encoder: of what `seen_space` has: a leaf `[row, *shape]`, or a dict of several, as `float32`.
    """

    def __init__(self, space: Packed, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self._space = space
        self._names = [name for name in space.leaves if name != ACTION_MASK]

    def forward(self, observation: Tensor) -> Tensor:
        """Return the features."""
        leaves = {name: self._space.tensor(observation, name).float() for name in self._names}
        features: Tensor = self.encoder(leaves[self._names[0]] if len(leaves) == 1 else leaves)
        return features


class Flat(nn.Module):
    """Leaves side by side, each flattened; numbered choices as one-hot vectors. It has no weights.

    Args:
        space: of a leaf, or of a dict of leaves.

    Attributes:
        features: how many numbers that makes.
    """

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        super().__init__()
        self._is_dict = isinstance(space, gymnasium.spaces.Dict)
        leaves = dict(space.spaces) if isinstance(space, gymnasium.spaces.Dict) else {"": space}
        # plain numbers, as the compiler would take those of a space for tensors
        self._choices = {name: _choices(leaf) for name, leaf in leaves.items()}
        self.features = sum(_features(leaf) for leaf in leaves.values())

    def forward(self, leaves: Any) -> Tensor:
        """Return `[row, features]`."""
        given = leaves if self._is_dict else {"": leaves}
        return torch.cat([_flat(given[name], choices) for name, choices in self._choices.items()], -1)


def _choices(space: gymnasium.Space[Any]) -> list[tuple[int, int]]:
    """Return the first number of each numbered choice of a leaf, and how many numbers it has; none for other leaves."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return [(int(space.start), int(space.n))]
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        return list(zip(space.start.reshape(-1).tolist(), space.nvec.reshape(-1).tolist(), strict=True))
    return []


def _features(space: gymnasium.Space[Any]) -> int:
    choices = _choices(space)
    return sum(size for _, size in choices) if choices else prod(space.shape or ())


def _flat(leaf: Tensor, choices: list[tuple[int, int]]) -> Tensor:
    numbers = leaf.reshape(leaf.shape[0], prod(leaf.shape[1:]))
    if not choices:
        return numbers
    each = zip(numbers.unbind(-1), choices, strict=True)
    return torch.cat([_one_hot(number, start, size) for number, (start, size) in each], -1)


def _one_hot(number: Tensor, start: int, size: int) -> Tensor:
    return (number.unsqueeze(-1) == torch.arange(start, start + size, device=number.device)).float()
