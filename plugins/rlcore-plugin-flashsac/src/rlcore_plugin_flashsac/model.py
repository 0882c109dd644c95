"""The model of blocks: an actor, categorical critics, their targets, and a temperature."""

from __future__ import annotations

from typing import Any, Self

import torch
from pydantic import BaseModel, Field, model_validator
from rlcore_plugin_sac.box import ActionBox, squashed_normal, vector_size
from rlcore_plugin_sac.policy import SamplingPolicy
from rlcore_plugin_sac.temperature import Temperature
from torch import nn

from rlcore.types import Context
from rlcore_plugin_flashsac.actor import BlocksActor
from rlcore_plugin_flashsac.blocks import BatchedNetwork, Block, Shape
from rlcore_plugin_flashsac.bounds import Bounded, bounds_of, keep
from rlcore_plugin_flashsac.critics import CategoricalCritics
from rlcore_plugin_flashsac.held import HeldNoise, HoldingPolicy
from rlcore_plugin_flashsac.layers import Norm
from rlcore_plugin_flashsac.observation_scale import ObservationNorm
from rlcore_plugin_flashsac.return_scale import RewardScale


class BlocksModel(nn.Module):
    """`actor`, `critics`, `target_critics` and `temperature`, of networks of blocks.

    The defaults are those of FlashSAC (Kim et al., 2026, arXiv 2604.04539).

    Attributes:
        box: of the actions.
        bounds: of the parameters of actor and critics, kept by the loss.
        reward_scale: what rewards are divided by, kept by the transform `return-scale`.
        observation_norm: what normalises observations, kept by the transform `observation-scale`; None for nothing.
        largest_return: the largest scaled return that the critics tell apart from larger ones.
        has_batch_norm: whether samples are normalised by their batch.
    """

    class Config(BaseModel, extra="forbid"):
        """Shapes of the networks, what bounds them, and how the policy explores."""

        block: Block = Field(
            "inverted",
            description="inverted (FlashSAC), residual (BroNet), plain layers (XQC) or spherical (SimbaV2)",
        )
        width: int = Field(128, ge=1, description="features between two blocks of the actor")
        blocks: int = Field(2, ge=0, description="blocks of the actor")
        critic_width: int = Field(256, ge=1, description="features between two blocks of each critic")
        critic_blocks: int = Field(2, ge=0, description="blocks of each critic")
        expansion: int = Field(4, ge=1, description="features inside a block, in widths")
        norm: Norm = Field("batch", description="of each linear map: batch, layer, rms or none")
        norm_momentum: float = Field(0.01, gt=0, le=1, description="how far an update moves the running statistics")
        last_norm: bool = Field(True, description="divide what the head sees by its root mean square")
        shift: float = Field(3.0, gt=0, description="spherical: a constant beside the inputs")
        observation_norm: bool = Field(
            False, description="normalise observations by what the transform observation-scale has seen"
        )
        bounded: Bounded = Field(
            "all", description="kept at a fixed length: none, the weights of linear maps, or all, norms too"
        )
        critics: int = Field(2, ge=1, description="how many critics")
        atoms: int = Field(101, ge=2, description="values of a scaled return that a critic tells apart")
        largest_return: float = Field(
            5.0, gt=0, allow_inf_nan=False, description="the largest of them; the least is minus it"
        )
        log_std_min: float = Field(-10.0, allow_inf_nan=False, description="least log standard deviation of the actor")
        log_std_max: float = Field(2.0, allow_inf_nan=False, description="largest log standard deviation of the actor")
        initial_temperature: float = Field(
            0.01, gt=0, le=1e6, allow_inf_nan=False, description="weight of the entropy in the beginning"
        )
        random_frames: int = Field(10_000, ge=0, description="frames in the beginning whose actions are uniform")
        noise_steps: int = Field(
            1,
            ge=1,
            le=100,
            description="most steps that keep one noise of the actions; k steps are as likely as 1 / k^2",
        )

        @model_validator(mode="after")
        def _is_a_range(self) -> Self:
            if self.log_std_min >= self.log_std_max:
                raise ValueError(f"log_std_min = {self.log_std_min} must be less than log_std_max = {self.log_std_max}")
            return self

        @model_validator(mode="after")
        def _fits_the_block(self) -> Self:
            if self.block == "spherical" and (self.norm != "none" or self.last_norm):
                raise ValueError(
                    "spherical blocks normalise by themselves: set norm = 'none' and last_norm = false beside them"
                )
            if self.block == "spherical" and self.bounded == "none":
                raise ValueError("spherical blocks need weights of length 1: set bounded = 'weights'")
            changed = self.model_dump(exclude_defaults=True)
            if self.block != "spherical" and "shift" in changed:
                raise ValueError("shift counts for nothing without block = 'spherical'; leave it out")
            if self.block == "plain" and "expansion" in changed:
                raise ValueError("expansion counts for nothing with plain blocks; leave it out")
            return self

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        spec = context.env_spec
        inputs = vector_size(spec.observation_space, "blocks")
        distribution = squashed_normal(spec.action_space, context.device)
        self.box = ActionBox(distribution)
        self.largest_return = config.largest_return
        self.has_batch_norm = config.norm == "batch"
        generator = torch.Generator().manual_seed(context.seed("actor"))
        shape = _shape(config, config.width, config.blocks)
        network = BatchedNetwork(1, inputs, distribution.num_parameters, shape, generator)
        self.observation_norm = norm = ObservationNorm(inputs) if config.observation_norm else None
        self.actor = BlocksActor(network, distribution, (config.log_std_min, config.log_std_max), norm)
        generator = torch.Generator().manual_seed(context.seed("critics"))
        shape = _shape(config, config.critic_width, config.critic_blocks)
        self.critics = CategoricalCritics(
            config.critics, inputs, config.atoms, config.largest_return, self.box, shape, generator, norm
        )
        self.bounds = bounds_of((self.actor, self.critics), config.bounded)
        keep(self.bounds)
        self.target_critics = self.critics.target()
        self.temperature = Temperature(config.initial_temperature)
        self.reward_scale = RewardScale()
        actor: Any = self.actor
        arguments = (actor, self.box, config.random_frames, context)
        holds = config.noise_steps > 1
        self.policy = HoldingPolicy(HeldNoise(config.noise_steps), *arguments) if holds else SamplingPolicy(*arguments)

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks, and of the temperature."""
        return ("actor", "critics", "target_critics", "temperature")


def _shape(config: BlocksModel.Config, width: int, blocks: int) -> Shape:
    return Shape(
        config.block,
        blocks,
        width,
        config.expansion,
        config.norm,
        config.norm_momentum,
        config.last_norm,
        config.shift,
    )
