"""The model component: a world model, an actor, a critic and its slow copy."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, Self

import gymnasium
import numpy as np
import torch
from pydantic import BaseModel, Field, PositiveInt, model_validator
from rlcore_plugin_cnn.images import Layout
from torch import Tensor, nn

from rlcore.envs import FLATTENED
from rlcore.errors import ConfigError
from rlcore.types import Context
from rlcore_plugin_dreamer.actions import actions_of
from rlcore_plugin_dreamer.bins import BINS, symexp_bins
from rlcore_plugin_dreamer.images import ImageDecoder, ImageEncoder, Images, convolutions, depths_of
from rlcore_plugin_dreamer.imagination import follow
from rlcore_plugin_dreamer.layers import Head
from rlcore_plugin_dreamer.policy import CarriedState, DreamerPolicy
from rlcore_plugin_dreamer.returns import ReturnBounds
from rlcore_plugin_dreamer.rssm import RSSM
from rlcore_plugin_dreamer.sizes import SIZES, Size, Widths
from rlcore_plugin_dreamer.vectors import VectorDecoder, VectorEncoder


class DreamerModel(nn.Module):
    """The networks of DreamerV3 (Hafner et al., 2025, "Mastering diverse control tasks through world models").

    `encoder`, `rssm`, `decoder`, `reward` and `continuation` are the world model; `actor` and `critic` see the features
    of its states. `reward` and `critic` return logits over bins, whose expectation is the prediction.

    Attributes:
        actions: distributions over encoded actions.
        carried: how the state of the policy lies in a tensor.
        bins: of rewards and values, `[bin]`.
        return_bounds: percentiles of returns, as the loss keeps them.
        latest_bounds: those with the returns of the update that is under way.

    Raises:
        ConfigError: actions or observations are of a kind that it does not take.
    """

    class Config(BaseModel, extra="forbid"):
        """The widths of the networks, and the distributions."""

        size: Size = Field("12m", description="widths of all networks, by their parameters: 1m to 400m")
        deter: PositiveInt | None = Field(None, description="width of the deterministic state; default: that of size")
        hidden: PositiveInt | None = Field(None, description="width of the layers around it; default: that of size")
        classes: PositiveInt | None = Field(None, description="classes of each latent; default: that of size")
        units: PositiveInt | None = Field(None, description="width of the other layers; default: that of size")
        depth: PositiveInt | None = Field(None, description="channels of images, times 2, 3, 4, 4; default: of size")
        latents: PositiveInt = Field(32, description="categorical latents")
        blocks: PositiveInt = Field(8, description="blocks of the recurrent weights")
        unimix: float = Field(0.01, ge=0, lt=1, description="share of the uniform distribution in that of a latent")
        action_unimix: float = Field(0.01, ge=0, lt=1, description="the same for numbered actions")
        std_min: float = Field(0.1, gt=0, description="least standard deviation of actions that are numbers")
        std_max: float = Field(1.0, gt=0, description="largest standard deviation of actions that are numbers")
        encoder_layers: PositiveInt = Field(3, description="layers of the encoder of vectors")
        decoder_layers: PositiveInt = Field(3, description="layers of the decoder of vectors")
        reward_layers: PositiveInt = Field(1, description="layers that predict rewards")
        continuation_layers: PositiveInt = Field(1, description="layers that predict whether an episode goes on")
        actor_layers: PositiveInt = Field(3, description="layers of the actor")
        critic_layers: PositiveInt = Field(3, description="layers of the critic")
        layout: Layout = Field("auto", description="where images have their channels: first, last, or the shorter end")

        @model_validator(mode="after")
        def _fits(self) -> Self:
            if self.std_max < self.std_min:
                raise ValueError(f"std_max = {self.std_max} must not be below std_min = {self.std_min}")
            if self.widths.deter % self.blocks:
                raise ValueError(f"deter = {self.widths.deter} must be a multiple of blocks = {self.blocks}")
            return self

        @property
        def widths(self) -> Widths:
            """Widths of the size, but where a key says another."""
            said = {name: getattr(self, name) for name in ("deter", "hidden", "classes", "units", "depth")}
            given = {name: value for name, value in said.items() if value is not None}
            return dataclasses.replace(SIZES[self.size], latents=self.latents, blocks=self.blocks, **given)

    bins: Tensor

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        spec, widths = context.env_spec, config.widths

        def generator(part: str) -> torch.Generator:
            return torch.Generator().manual_seed(context.seed(part))

        self.actions = actions_of(
            spec.action_space, config.action_unimix, (config.std_min, config.std_max), context.device
        )
        features = widths.deter + widths.latents * widths.classes
        self.encoder, self.decoder = _coders(spec.observation_space, config, widths, features, generator)
        tokens: int = self.encoder.tokens
        self.rssm = RSSM(widths, self.actions.inputs, tokens, config.unimix, generator("rssm"))

        def head(part: str, layers: int, outputs: int, scale: float) -> Head:
            return Head(features, layers, widths.units, outputs, scale, generator(part))

        self.reward = head("reward", config.reward_layers, BINS, 0.0)
        self.continuation = head("continuation", config.continuation_layers, 1, 1.0)
        self.actor = head("actor", config.actor_layers, self.actions.outputs, 0.01)
        self.critic = head("critic", config.critic_layers, BINS, 0.0)
        self.target_critic = copy.deepcopy(self.critic).requires_grad_(False)
        self.return_bounds, self.latest_bounds = ReturnBounds(), ReturnBounds()
        self.register_buffer("bins", symexp_bins(BINS), persistent=False)
        self.carried = CarriedState(self.rssm, self.actions.inputs)
        self.policy = DreamerPolicy(self.encoder, self.rssm, self.actor, self.actions)

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks."""
        return ("encoder", "rssm", "decoder", "reward", "continuation", "actor", "critic", "target_critic")

    def imagine(
        self, observation: Tensor, action: Tensor, shown: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Return the observations of an episode and what is predicted: see `rlcore_plugin_agents.imagining.Imagines`.

        Latents are sampled: of the posterior where an observation is shown, and else of the prior.
        """
        encoded = self.actions.from_env(action)
        before = torch.cat([torch.zeros_like(encoded[:1]), encoded[:-1]])
        uniform = torch.rand(len(action), self.rssm.latents, generator=generator, device=generator.device)
        latent = follow(self.rssm, self.encoder(observation), before, shown, uniform)
        predicted = self.decoder.observations(self.decoder(*latent))
        return self.decoder.compared(observation), predicted


def _coders(
    space: gymnasium.Space[Any], config: DreamerModel.Config, widths: Widths, features: int, generator: Any
) -> tuple[Any, Any]:
    """Return what encodes and what predicts observations of a space.

    Raises:
        ConfigError: they are neither vectors nor images whose sides can be halved.
    """
    of_encoder, of_decoder = generator("encoder"), generator("decoder")
    is_array = isinstance(space, gymnasium.spaces.Box)
    shape = space.shape or ()
    if is_array and len(shape) == 1 and np.dtype(space.dtype).kind in "fiub":
        encoder = VectorEncoder(shape[0], config.encoder_layers, widths.units, of_encoder)
        return encoder, VectorDecoder(features, shape[0], config.decoder_layers, widths.units, of_decoder)
    if is_array and 2 <= len(shape) <= 4:
        images = Images(space, config.layout)
        _, height, width = images.shape
        if not convolutions(height, width):
            raise ConfigError(
                f"[model] dreamer: each convolution halves the sides of an image, and {height} x {width} cannot be "
                "halved to 3 or more; resize images to sides such as 64, or flatten them with [[transform]] use = "
                '"transforms:flatten"'
            )
        channels = depths_of(widths, convolutions(height, width))[-1]
        if channels % widths.blocks:
            raise ConfigError(
                f"[model] dreamer: the last convolution of {height} x {width} images has {channels} channels, depth = "
                f"{widths.depth}, which must be a multiple of blocks = {widths.blocks}"
            )
        return ImageEncoder(images, widths, of_encoder), ImageDecoder(images, widths, of_decoder)
    raise ConfigError(
        "[model] dreamer takes observations that are a vector or an image, a Box of one to four dimensions, not "
        f"{space}; dicts can be joined by a wrapper of the env",
        remedy=FLATTENED,
    )
