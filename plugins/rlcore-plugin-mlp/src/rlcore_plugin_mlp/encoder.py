"""A network of the user's own before the MLP of a part: built from the observation space, and tried out once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import gymnasium
import torch
from torch import Tensor, nn

from rlcore.config import import_named
from rlcore.errors import ConfigError, RlcoreError, describe
from rlcore_plugin_mlp.leaves import PackedEncoder

_KEY = "[model] encoder"


def build_encoder(
    place: str, space: gymnasium.Space[Any], seed: int, keywords: Mapping[str, Any], key: str = _KEY
) -> tuple[nn.Module, int]:
    """Build the module that a config names, and return it with the number of its outputs.

    Args:
        place: `"module:Name"`, of what is called with the observation space and returns a module.
        space: of the observations.
        seed: of torch's own generator while it is built, which is afterwards where it was.
        keywords: further arguments of what the config names.
        key: of the config that names it, for messages.

    Raises:
        ConfigError: it cannot be found or built, is no module, or does not turn `[2, *shape]` into `[2, features]`.
    """
    is_box = isinstance(space, gymnasium.spaces.Box) and bool(space.shape)
    if not is_box and not isinstance(space, gymnasium.spaces.Dict):
        raise ConfigError(f"{key}: it takes observations in a Box of one dimension or more, or a Dict, not {space}")
    kind = import_named(place, key)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            encoder = kind(space, **keywords)
        except RlcoreError:
            raise
        except Exception as error:
            raise ConfigError(f"{key} = {place!r}, called with the space, raised {describe(error)}") from error
        if not isinstance(encoder, nn.Module):
            raise ConfigError(f"{key} = {place!r} returned {type(encoder).__name__}, which is no torch.nn.Module")
        return encoder, _features(encoder, place, space, key)


def _features(encoder: nn.Module, place: str, space: gymnasium.Space[Any], key: str) -> int:
    """Try the encoder out on two observations of zeros, twice, and on one, in evaluation mode."""
    shape: Any = _shape(space)
    was_training = encoder.training
    try:
        with torch.no_grad():
            outputs, again, alone = (encoder.eval()(_zeros(space, rows)) for rows in (2, 2, 1))
    except Exception as error:
        raise ConfigError(f"{key} = {place!r} fails on observations {shape} of float32: {describe(error)}") from error
    finally:
        encoder.train(was_training)
    if not isinstance(outputs, Tensor) or outputs.ndim != 2 or outputs.shape[0] != 2 or outputs.dtype != torch.float32:
        found = f"{list(outputs.shape)} of {outputs.dtype}" if isinstance(outputs, Tensor) else type(outputs).__name__
        raise ConfigError(
            f"{key} = {place!r} turns observations {shape} into {found}; expected [2, features] of torch.float32"
        )
    if not _agree(outputs, again) or not _agree(outputs[:1], alone):
        raise ConfigError(
            f"{key} = {place!r} makes other features of an observation in evaluation mode when it is called again, or "
            "for it alone; let dropout follow `self.training`, and norms use running statistics"
        )
    return outputs.shape[1]


def _agree(features: Tensor, others: Tensor) -> bool:
    # some processors sum the products of one observation in another order than those of two
    return torch.allclose(features, others, rtol=1e-4, atol=1e-5, equal_nan=True)


def _shape(space: gymnasium.Space[Any], rows: int = 2) -> list[int] | dict[str, list[int]]:
    if isinstance(space, gymnasium.spaces.Dict):
        return {name: [rows, *(leaf.shape or ())] for name, leaf in space.spaces.items()}
    return [rows, *(space.shape or ())]


def _zeros(space: gymnasium.Space[Any], rows: int) -> Tensor | dict[str, Tensor]:
    shape = _shape(space, rows)
    return {name: torch.zeros(own) for name, own in shape.items()} if isinstance(shape, dict) else torch.zeros(shape)


class EncodedMLP(nn.Module):
    """An encoder, then an MLP: observations `[..., *shape]` of any kind of number to `[..., outputs]`.

    Args:
        encoder: `[row, *shape]`, float32, to `[row, features]`; a `PackedEncoder` takes rows as they are.
        head: `[..., features]` to `[..., outputs]`.
        shape: of an observation.
    """

    def __init__(self, encoder: nn.Module, head: Any, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self._shape = shape
        self._casts = not isinstance(encoder, PackedEncoder)

    @property
    def layers(self) -> nn.ModuleList:
        """Those of the MLP."""
        return self.head.layers  # type: ignore[no-any-return]

    def forward(self, observation: Tensor, *further: Tensor) -> Tensor:
        """Return the outputs of the MLP, which gets what is given further as it is."""
        return self.of_features(self.features(observation), *further)

    def of_features(self, features: Tensor, *further: Tensor) -> Tensor:
        """Return the outputs of the MLP of features `[..., features]`, as `features` returns them."""
        return self.head(features, *further)  # type: ignore[no-any-return]

    def raw(self) -> Callable[..., Tensor]:
        """Return the forward pass, over views of the weights of the MLP as they lie in memory now; see `MLP.raw`."""
        head = self.head.raw()

        def forward(observation: Tensor, *further: Tensor) -> Tensor:
            features = self.features(observation)
            outputs: Tensor = head(features.reshape(-1, features.shape[-1]), *further)
            return outputs.reshape(*features.shape[:-1], outputs.shape[-1])

        return forward

    def features(self, observation: Tensor) -> Tensor:
        """Return what the encoder makes of observations `[..., *shape]`, `[..., features]`."""
        before = observation.shape[: observation.ndim - len(self._shape)]
        rows = observation.reshape(prod(before), *self._shape)
        features: Tensor = self.encoder(rows.float() if self._casts else rows)
        return features.reshape(*before, features.shape[-1])
