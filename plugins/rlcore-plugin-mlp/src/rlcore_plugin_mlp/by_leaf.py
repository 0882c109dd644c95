"""A network for each leaf of observations that are dicts, and the features of all of them side by side."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import gymnasium
import torch
from pydantic import BaseModel, Field, PositiveInt, model_validator
from torch import Tensor, nn

from rlcore.envs import ACTION_MASK, Packed
from rlcore.errors import ConfigError, did_you_mean
from rlcore_plugin_mlp.encoder import build_encoder
from rlcore_plugin_mlp.leaves import Flat, PackedEncoder
from rlcore_plugin_mlp.network import ACTIVATIONS, Activation, Initialisation, initialise
from rlcore_plugin_mlp.unfilled import unfilled

_GAIN = 2**0.5


class LeafEncoder(BaseModel, extra="allow"):
    """What a leaf goes through: a network by its name, with its further arguments as keys; or hidden layers."""

    encoder: str | None = Field(None, description="'module:Name' of a network, whose arguments are the further keys")
    hidden: list[PositiveInt] | None = Field(None, description="or the sizes of layers that the flat leaf goes through")

    @model_validator(mode="after")
    def _is_one(self) -> LeafEncoder:
        further = [f"{key} = ..." for key in self.model_extra or {}]
        if (self.encoder is None) == (self.hidden is None):
            raise ValueError("name one network, encoder = 'module:Name', or give layers, hidden = [64]")
        if self.hidden is not None and further:
            raise ValueError(f"layers take nothing but their sizes; leave out {', '.join(further)}")
        return self


class ByLeaf(nn.Module):
    """Leaves `[row, *shape]`, each through a network of its own, to their features side by side, `[row, features]`.

    Args:
        networks: of each leaf; the features come in this order.
    """

    def __init__(self, networks: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self._names = tuple(networks)
        self.networks = nn.ModuleList(networks.values())  # by number, as names of leaves may have dots

    def forward(self, leaves: Any) -> Tensor:
        """Return the features.

        Args:
            leaves: by name; the tensor itself of one that is alone.
        """
        given = {self._names[0]: leaves} if isinstance(leaves, Tensor) else leaves
        features = [network(given[name]) for name, network in zip(self._names, self.networks, strict=True)]
        return torch.cat(features, -1)


def by_leaf(
    encoders: Mapping[str, LeafEncoder],
    space: gymnasium.Space[Any],
    seed: int,
    activation: Activation,
    initialisation: Initialisation,
) -> tuple[PackedEncoder, int]:
    """Return an encoder with a network for each leaf, and how many features it makes; others are flattened.

    Args:
        encoders: by the name of the leaf.
        space: of the observations.
        seed: of the weights.
        activation: behind each of the hidden layers.
        initialisation: of those layers.

    Raises:
        ConfigError: observations are one array, there is no such leaf, or a network does not fit its leaf.
    """
    key = "[model] encoders"
    if not isinstance(space, Packed):
        raise ConfigError(f"{key}: observations are one array, {space}; name one network: encoder = 'module:Name'")
    leaves = {name: leaf for name, leaf in space.leaves.items() if name != ACTION_MASK}
    for name in encoders:
        if name not in leaves:
            there = ", ".join(map(repr, leaves))
            raise ConfigError(f"{key}.{name}: there is no such leaf; there are {there}{did_you_mean(name, leaves)}")
    networks: dict[str, nn.Module] = {}
    features = 0
    for number, (name, leaf) in enumerate(leaves.items()):
        chosen = encoders.get(name)
        if chosen is not None and chosen.encoder is not None:
            further = chosen.model_extra or {}
            networks[name], size = build_encoder(chosen.encoder, leaf, seed + number, further, f"{key}.{name}")
        else:
            hidden = [] if chosen is None else chosen.hidden or []
            generator = torch.Generator().manual_seed(seed + number)
            networks[name], size = _layers(leaf, hidden, activation, initialisation, generator)
        features += size
    return PackedEncoder(space, ByLeaf(networks)), features


def _layers(
    leaf: gymnasium.Space[Any],
    hidden: list[int],
    activation: Activation,
    initialisation: Initialisation,
    generator: torch.Generator,
) -> tuple[nn.Module, int]:
    """Return what flattens a leaf and puts it through layers, and how many numbers it returns."""
    flat = Flat(leaf)
    layers: list[nn.Module] = [flat]
    inputs = flat.features
    for outputs in hidden:
        layer = unfilled(partial(nn.Linear, inputs, outputs))
        initialise(layer, initialisation, _GAIN, generator)
        layers += [layer, _Activation(activation)]
        inputs = outputs
    return nn.Sequential(*layers), inputs


class _Activation(nn.Module):
    """One of the activations of an MLP."""

    def __init__(self, name: Activation) -> None:
        super().__init__()
        self._name = name

    def forward(self, inputs: Tensor) -> Tensor:
        return ACTIVATIONS[self._name](inputs)
