"""The model component: that of SAC or TD3, with a dynamics ensemble as a further part."""

from __future__ import annotations

from typing import Self

import gymnasium
import numpy as np
import torch
from pydantic import Field, PositiveInt, model_validator
from rlcore_plugin_sac.actors import StochasticActor
from rlcore_plugin_sac.model import ActorCriticModel
from torch import Tensor

from rlcore.envs import FLATTENED, is_image
from rlcore.errors import ConfigError
from rlcore.types import Context
from rlcore_plugin_mbpo.dynamics import Dynamics
from rlcore_plugin_mbpo.terminations import LEARNED, rule_of


class MBPOModel(ActorCriticModel):
    """The parts of `sac:actor-critic`, and `dynamics`, which the buffer trains (Janner et al., 2019, arXiv 1906.08253).

    An optimizer of the config moves no weight of `dynamics`: the buffer's own does.

    Attributes:
        rule: where imagined episodes end, of observations, actions and next ones; None where it is learned.
    """

    class Config(ActorCriticModel.Config):
        """The networks of actor and critics, and those of the dynamics."""

        members: int = Field(7, ge=1, description="members of the dynamics ensemble")
        elites: int = Field(5, ge=1, description="members that imagine: those with the least error on held-out rows")
        dynamics_hidden: list[PositiveInt] = Field([200, 200, 200, 200], description="hidden sizes of each member")
        termination: str = Field(
            LEARNED, description="where imagined episodes end: learned, never, or a function 'module:name'"
        )

        @model_validator(mode="after")
        def _has_elites(self) -> Self:
            if self.elites > self.members:
                raise ValueError(f"elites = {self.elites} are chosen from members = {self.members}; lower the one")
            return self

    def __init__(self, config: Config, context: Context) -> None:
        size = _size(context.env_spec.observation_space)
        super().__init__(config, context)
        self.rule = rule_of(config.termination)
        self.dynamics = Dynamics(
            size,
            self.box.size,
            config.members,
            config.elites,
            config.dynamics_hidden,
            self.rule is None,
            torch.Generator().manual_seed(context.seed("dynamics")),
        ).requires_grad_(False)

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks, of the temperature, and of the dynamics."""
        return (*super().parts(), "dynamics")

    @torch.no_grad()
    def explore(self, observation: Tensor, generator: torch.Generator) -> Tensor:
        """Return actions `[row, action]` of the policy of now, with its noise; none is uniform, as those at first are.

        Args:
            observation: `[row, observation]`.
            generator: of the noise, on the device of the rows.
        """
        noise = torch.randn(observation.shape[0], self.box.size, generator=generator, device=observation.device)
        if isinstance(self.actor, StochasticActor):
            return self.box.from_unit(self.actor.rsample(observation, noise)[0])
        unit = self.actor.unit(observation) + noise * self.schedulable["noise"]  # type: ignore[operator]
        return self.box.from_unit(unit.clamp(-1, 1))


def _size(space: gymnasium.Space[object]) -> int:
    """Return the size of an observation.

    Raises:
        ConfigError: it is nothing that the dynamics predict.
    """
    flat = isinstance(space, gymnasium.spaces.Box) and len(space.shape) == 1
    if not flat or not np.issubdtype(space.dtype or np.int64, np.floating):
        raise ConfigError(
            f"[model] mbpo predicts observations in a Box of floats of one dimension, not {space}; dicts can be joined "
            'by a wrapper of the env, arrays by [[transform]] use = "transforms:flatten"; images are not predicted',
            remedy={} if is_image(space) else FLATTENED,
        )
    return int(space.shape[0])  # type: ignore[index]
