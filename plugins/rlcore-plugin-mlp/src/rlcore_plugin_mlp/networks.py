"""The network of a part, as a model's section says it: an MLP, or one behind an encoder of the user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import gymnasium
import numpy as np
import torch
from torch import nn

from rlcore.envs import FLATTENED, Packed, is_image
from rlcore.errors import ConfigError
from rlcore_plugin_mlp.by_leaf import LeafEncoder, by_leaf
from rlcore_plugin_mlp.encoder import EncodedMLP, build_encoder
from rlcore_plugin_mlp.leaves import Flat, PackedEncoder, seen_space
from rlcore_plugin_mlp.network import MLP, Activation, Initialisation, mlp_for

Network: TypeAlias = MLP | EncodedMLP


class NetworkConfig(Protocol):
    """The keys of a section that describe a network."""

    @property
    def hidden(self) -> Sequence[int]:
        """Sizes of the hidden layers."""
        ...

    @property
    def activation(self) -> Activation:
        """Between the layers."""
        ...

    @property
    def initialisation(self) -> Initialisation:
        """Of the layers."""
        ...

    @property
    def encoder(self) -> str | None:
        """Where an encoder is imported from; None for none."""
        ...

    @property
    def encoder_kwargs(self) -> Mapping[str, Any]:
        """Its arguments, besides the space of observations."""
        ...

    @property
    def encoders(self) -> Mapping[str, LeafEncoder]:
        """Networks of the leaves of observations that are dicts; none where they have none of their own."""
        ...


@dataclass(frozen=True)
class Networks:
    """Builds networks for observations of a space; all of one object have the same encoder.

    Attributes:
        config: says how.
        space: of the observations.
        encoder: before each MLP; None where there is none.
        inputs: of each MLP.
    """

    config: NetworkConfig
    space: gymnasium.Space[Any]
    encoder: nn.Module | None
    inputs: int

    @classmethod
    def of(cls, config: NetworkConfig, space: gymnasium.Space[Any], seed: int) -> Networks:
        """Return what builds networks, with its encoder where the config names one.

        Raises:
            ConfigError: the encoder does not fit; or there is none, and the observations are not flat.
        """
        if config.encoders:
            if config.encoder is not None:
                raise ConfigError("[model] encoders: there is an encoder of all leaves too; leave one of them out")
            return cls(config, space, *by_leaf(config.encoders, space, seed, config.activation, config.initialisation))
        if config.encoder is not None:
            seen = seen_space(space) if isinstance(space, Packed) else space
            encoder, features = build_encoder(config.encoder, seen, seed, config.encoder_kwargs)
            return cls(config, space, PackedEncoder(space, encoder) if isinstance(space, Packed) else encoder, features)
        if config.encoder_kwargs:
            raise ConfigError(
                "[model] encoder_kwargs: there is no encoder that takes them; name one: encoder = 'module:Name'"
            )
        if isinstance(space, Packed):
            flat = Flat(seen_space(space))
            return cls(config, space, PackedEncoder(space, flat), flat.features)
        if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
            raise ConfigError(
                f"[model] mlp takes observations in a Box of one dimension, not {space}; for others, name a network of "
                "yours: encoder = 'module:Name'; for images, one of rlcore-plugin-cnn; or flatten them: [[transform]] "
                'use = "transforms:flatten"',
                remedy=_for_images(space) if is_image(space) else FLATTENED,
            )
        return cls(config, space, None, space.shape[0])

    def network(
        self, outputs: int, last_gain: float, generator: torch.Generator, hidden: Sequence[int] | None = None
    ) -> Network:
        """Return a network.

        Args:
            outputs: of its last layer.
            last_gain: orthogonal gain of the last layer.
            generator: samples the weights of the MLP.
            hidden: sizes of its hidden layers; default: those of the config.
        """
        config = self.config
        kind = mlp_for(self.space) if self.encoder is None else MLP
        sizes = [self.inputs, *(config.hidden if hidden is None else hidden), outputs]
        network = kind(sizes, config.activation, config.initialisation, last_gain, generator)
        return network if self.encoder is None else EncodedMLP(self.encoder, network, self.space.shape or ())


def _for_images(space: gymnasium.Space[Any]) -> dict[str, Any]:
    """Return the remedy for images: a convolutional encoder, which takes their numbers as they are."""
    kwargs: dict[str, Any] = {}
    shape = space.shape or ()
    if len(shape) == 3 and shape[0] == shape[-1]:
        kwargs["layout"] = "last"  # where Gymnasium has the channels, which such a shape does not say
    low, high = float(space.low.min()), float(space.high.max())  # type: ignore[attr-defined]
    if np.issubdtype(space.dtype or np.uint8, np.floating) and low >= 0 and 1 < high < np.inf:
        kwargs["divisor"] = high
    model = {"encoder": "rlcore_plugin_cnn.bodies:NatureCNN"} | ({"encoder_kwargs": kwargs} if kwargs else {})
    return {"model": model, "transform": dict.fromkeys(("running-observation-norm", "observation-norm"))}
