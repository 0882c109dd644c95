"""The model component: the parts of the world model, the target critics, and the policy that plans."""

from __future__ import annotations

import copy
from typing import Final, Self

import torch
from pydantic import Field, PositiveInt, model_validator
from rlcore_plugin_sac.box import ActionBox, squashed_normal, vector_size
from torch import Tensor, nn

from rlcore.types import Context
from rlcore_plugin_tdmpc2.layers import Ensemble, Network, SimNorm
from rlcore_plugin_tdmpc2.planning import MPPI, PlannerConfig
from rlcore_plugin_tdmpc2.policy import PlanningPolicy
from rlcore_plugin_tdmpc2.prior import Prior
from rlcore_plugin_tdmpc2.scale import PercentileScale
from rlcore_plugin_tdmpc2.two_hot import TwoHot
from rlcore_plugin_tdmpc2.world import World

# the discount follows from the length of episodes, as the reference has it: a fifth of it is the time that counts
_PARTS_OF_EPISODE: Final = 5
_GAMMA_RANGE: Final = (0.95, 0.995)
_GAMMA_UNKNOWN: Final = 0.99


class TDMPC2Model(nn.Module):
    """`encoder`, `dynamics`, `reward`, `critics`, `target_critics` and `prior` of TD-MPC2, and a planner over them.

    Attributes:
        box: of the actions.
        dropout: fraction of the first hidden values of the critics that the losses leave out.
        gamma: discount.
        numbers: what the logits of rewards and values stand for.
        scale: by which the loss of the prior divides values.
        policy: plans.
    """

    mode_noise: Tensor

    class Config(PlannerConfig):
        """The networks, and the budget of the planner."""

        latent_size: PositiveInt = Field(512, description="size of a latent")
        encoder_hidden: list[PositiveInt] = Field([256], description="hidden sizes of the encoder")
        hidden: list[PositiveInt] = Field([512, 512], min_length=1, description="hidden sizes of all other networks")
        simplex: PositiveInt = Field(8, description="features of a latent that sum to one")
        critics: PositiveInt = Field(5, description="how many")
        dropout: float = Field(0.01, ge=0, lt=1, description="fraction of the critics' first hidden values left out")
        bins: int = Field(101, ge=3, description="of the distributions of rewards and values")
        value_limit: float = Field(10.0, gt=0, le=80, description="the last bin is symexp of it, the first minus that")
        log_std_min: float = Field(-10.0, allow_inf_nan=False, description="least log standard deviation of the prior")
        log_std_max: float = Field(2.0, allow_inf_nan=False, description="the largest one")
        encoder_rate: float = Field(0.3, gt=0, le=1, description="learning rate of the encoder, relative to the others")
        scale_rate: float = Field(0.01, gt=0, le=1, description="how far an update moves the scale of values")
        gamma: float | None = Field(None, ge=0, le=1, description="discount; default: by the length of episodes")
        random_frames: int = Field(1_000, ge=0, description="frames in the beginning whose actions are uniform")

        @model_validator(mode="after")
        def _fits(self) -> Self:
            if self.latent_size % self.simplex:
                raise ValueError(f"latent_size = {self.latent_size} must be a multiple of simplex = {self.simplex}")
            if self.prior_samples >= self.samples:
                raise ValueError(f"prior_samples = {self.prior_samples} must be less than samples = {self.samples}")
            if self.elites > self.samples:
                raise ValueError(f"elites = {self.elites} must be at most samples = {self.samples}")
            if self.std_min > self.std_max:
                raise ValueError(f"std_min = {self.std_min} must be at most std_max = {self.std_max}")
            if self.log_std_min >= self.log_std_max:
                raise ValueError(f"log_std_min = {self.log_std_min} must be less than log_std_max = {self.log_std_max}")
            return self

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        spec = context.env_spec
        inputs = vector_size(spec.observation_space, "tdmpc2")
        self.box = ActionBox(squashed_normal(spec.action_space, context.device, "tdmpc2"))
        self.gamma = _gamma(spec.max_episode_steps) if config.gamma is None else config.gamma
        self.dropout = config.dropout
        self.numbers = TwoHot(config.bins, -config.value_limit, config.value_limit)
        self.scale = PercentileScale(config.scale_rate)
        self._add_networks(config, inputs, context)
        self.target_critics = copy.deepcopy(self.critics).requires_grad_(False)
        planner = MPPI(config, self.box.size, config.critics, self.gamma)
        generator = torch.Generator().manual_seed(context.seed("mode"))
        self.register_buffer("mode_noise", torch.randn(planner.noise_size, generator=generator))
        self.world = World(self.encoder, self.dynamics, self.reward, self.critics, self.prior, self.numbers)
        self.policy = PlanningPolicy(self.world, planner, self, self.box, config.random_frames, context)

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks."""
        return ("encoder", "dynamics", "reward", "critics", "target_critics", "prior")

    def _add_networks(self, config: Config, observations: int, context: Context) -> None:
        latent, actions = config.latent_size, self.box.size
        simplices = SimNorm(config.simplex)

        def generator(name: str) -> torch.Generator:
            return torch.Generator().manual_seed(context.seed(name))

        sizes = [latent + actions, *config.hidden]
        encoder = [observations, *config.encoder_hidden, latent]
        self.encoder = Network(encoder, generator("encoder"), simplices, rate=config.encoder_rate)
        self.dynamics = Network([*sizes, latent], generator("dynamics"), simplices)
        self.reward = Network([*sizes, config.bins], generator("reward"), zero=True)
        self.critics = Ensemble(config.critics, [*sizes, config.bins], generator("critics"))
        log_std = (config.log_std_min, config.log_std_max)
        self.prior = Prior([latent, *config.hidden], actions, log_std, generator("prior"))


def _gamma(episode_steps: int | None) -> float:
    """Return the discount for episodes of so many steps: those of 0.99 where that is not known."""
    if episode_steps is None:
        return _GAMMA_UNKNOWN
    low, high = _GAMMA_RANGE
    return min(max(1 - _PARTS_OF_EPISODE / episode_steps, low), high)
