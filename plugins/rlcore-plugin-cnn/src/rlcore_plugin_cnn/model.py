"""The model components: an actor and a critic of images, the heads of the model `mlp` behind a convolutional body."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
from gymnasium.spaces import Box
from pydantic import BaseModel, Field, PositiveInt
from rlcore_plugin_mlp.by_leaf import LeafEncoder
from rlcore_plugin_mlp.model import MLPModel, Part
from rlcore_plugin_mlp.network import Activation, Initialisation

from rlcore.envs import Packed
from rlcore.errors import ConfigError
from rlcore.types import Context
from rlcore_plugin_cnn.images import Layout


class _ImageConfig(BaseModel, extra="forbid"):
    """The keys that both models have."""

    parts: list[Part] = Field(["actor", "critic"], min_length=1, description="networks to build")
    share: bool = Field(True, description="one body for all parts, instead of one for each")
    hidden: list[PositiveInt] = Field([], description="hidden sizes of each part behind its body")
    activation: Activation = Field("relu", description="between those: tanh, relu or silu")
    initialisation: Initialisation = Field("orthogonal", description="torch (its default) or orthogonal")
    log_std: float | None = Field(
        None,
        allow_inf_nan=False,
        description="let the log standard deviations of the actor be parameters that begin here; default: outputs",
    )
    layout: Layout = Field("auto", description="where an image has its channels: first, last, or at its shorter end")
    divisor: float | None = Field(None, gt=0, description="of all numbers; default: 255 for bytes, 1 for floats")


def _images(space: gymnasium.Space[Any]) -> list[str]:
    """Return the leaves of observations that are images; none where these are one array.

    Raises:
        ConfigError: there are leaves, and none is one.
    """
    if not isinstance(space, Packed):
        return []
    found = [name for name, leaf in space.leaves.items() if isinstance(leaf, Box) and 2 <= len(leaf.shape) <= 4]
    if not found:
        raise ConfigError(
            f"[model]: a convolution takes images, a Box of two to four dimensions, and no leaf of {space} is one; the "
            'model "mlp" takes the others'
        )
    return found


class _ImageModel(MLPModel):
    """An `MLPModel` whose encoder is a convolutional body; where observations are dicts, one for each image in them."""

    body: ClassVar[str]
    of_body: ClassVar[tuple[str, ...]]

    def __init__(self, config: Any, context: Context) -> None:
        body = f"rlcore_plugin_cnn.bodies:{self.body}"
        keys = {key: getattr(config, key) for key in ("initialisation", "layout", "divisor", *self.of_body)}
        images = _images(context.env_spec.observation_space)
        super().__init__(
            MLPModel.Config(
                parts=config.parts,
                hidden=config.hidden,
                actor_hidden=None,
                critic_hidden=None,
                sde=False,
                sde_every=0,
                activation=config.activation,
                initialisation=config.initialisation,
                log_std=config.log_std,
                encoder=None if images else body,
                encoder_kwargs={} if images else keys,
                encoders={name: LeafEncoder.model_validate({"encoder": body, **keys}) for name in images},
                share_encoder=config.share,
            ),
            context,
        )


class NatureCNNModel(_ImageModel):
    """An actor and a critic behind the convolutions of Mnih et al. (2015), which they share; see `NatureCNN`.

    With its defaults it has the layers of CleanRL's `ppo_atari.py` and of Stable-Baselines3's `CnnPolicy`.
    """

    body = "NatureCNN"
    of_body = ("channels", "kernels", "strides", "features")

    class Config(_ImageConfig):
        """Shape of the body and of the heads."""

        channels: list[PositiveInt] = Field([32, 64, 64], min_length=1, description="of each convolution")
        kernels: list[PositiveInt] = Field([8, 4, 3], min_length=1, description="sizes of the convolutions")
        strides: list[PositiveInt] = Field([4, 2, 1], min_length=1, description="of each convolution")
        features: int = Field(512, ge=1, description="of the linear layer behind them")


class ImpalaCNNModel(_ImageModel):
    """An actor and a critic behind the residual blocks of Espeholt et al. (2018), which they share; see `ImpalaCNN`."""

    body = "ImpalaCNN"
    of_body = ("channels", "features")

    class Config(_ImageConfig):
        """Shape of the body and of the heads."""

        channels: list[PositiveInt] = Field([16, 32, 32], min_length=1, description="of each stage of two blocks")
        features: int = Field(256, ge=1, description="of the linear layer behind them")
