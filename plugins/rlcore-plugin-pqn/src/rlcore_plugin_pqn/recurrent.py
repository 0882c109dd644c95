"""The model component with memory: layers with layer norm, an LSTM or a GRU, and action values behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import torch
from pydantic import Field, PositiveInt
from rlcore_plugin_cnn.images import Layout
from rlcore_plugin_dqn.model import actions_of
from rlcore_plugin_dqn.policy import EpsilonConfig, EpsilonGreedy
from rlcore_plugin_dqn.recurrent import RecurrentEpsilonGreedy, RecurrentQValues
from rlcore_plugin_recurrent.body import Body, BodyConfig, Kind
from torch import Tensor, nn

from rlcore.types import Context
from rlcore_plugin_pqn.model import ActingOnValues, Greatest, QNetwork, convolutions_of, inputs_of, normed_layers


class RecurrentNormedQNetworkModel(ActingOnValues):
    """Action values behind a memory, `q_values(observation, state, first)`; layers before and behind it have norms.

    Attributes:
        critic: the same inputs to the greatest action value, `[..., 1]`.
        first_action: the number of the first action.
        schedulable: `epsilon`, which a schedule may move instead of `epsilon_end` and `epsilon_fraction`.

    Raises:
        ConfigError: the actions are not discrete, or the observations are neither flat nor images with `channels`.
    """

    class Config(EpsilonConfig):
        """Shape of the network, and how it explores."""

        cell: Kind = Field("lstm", description="the recurrent layer: lstm or gru")
        size: PositiveInt = Field(64, description="of the recurrent layer")
        encoder_hidden: list[PositiveInt] = Field([64], description="hidden sizes before it; [] for none")
        hidden: list[PositiveInt] = Field([], description="hidden sizes behind it")
        channels: list[PositiveInt] = Field([], description="channels of convolutions of 3 x 3 before all, of images")
        layout: Layout = Field("auto", description="where the channels of an image are; auto takes the shorter end")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        num_actions, self.first_action = actions_of(context.env_spec.action_space, "recurrent-normed-q-network")
        if not config.channels:
            inputs_of(context.env_spec.observation_space)
        body = BodyConfig(
            size=config.size,
            layers=1,
            activation="relu",  # of layers that there are none of: the encoder has its own
            initialisation="torch",
            encoder_hidden=[],
            encoder=f"{__name__}:NormedEncoder",
            encoder_kwargs={
                "hidden": config.encoder_hidden,
                "channels": config.channels,
                "layout": config.layout,
            },
        )
        generator = torch.Generator().manual_seed(context.seed("q_values"))
        head = QNetwork([config.size, *config.hidden], num_actions, False, generator)
        q_values = RecurrentQValues(Body(config.cell, body, context), head)
        self.critic = Greatest(q_values)
        explorer = EpsilonGreedy(q_values, num_actions, config, context.progress)
        self.policy = RecurrentEpsilonGreedy(q_values, explorer, self.first_action)
        self.schedulable = self.policy.schedulable


class NormedEncoder(nn.Module):
    """Observations `[row, *shape]` to features `[row, feature]`, by layers with layer norm.

    Weights are drawn from torch's own generator.

    Args:
        space: of an observation.
        hidden: sizes of the layers.
        channels: of convolutions before them; none of flat observations.
        layout: where the channels of an image are.
    """

    def __init__(
        self, space: gymnasium.Space[Any], hidden: Sequence[int], channels: Sequence[int], layout: Layout
    ) -> None:
        super().__init__()
        generator = torch.default_generator
        if channels:
            convolutions = convolutions_of(space, channels, layout, generator)
            before, inputs = [convolutions], convolutions.features
        else:
            before, inputs = [], inputs_of(space)
        self.layers = nn.Sequential(*before, *normed_layers([inputs, *hidden], False, generator))

    def forward(self, observation: Tensor) -> Tensor:
        """Return the features."""
        return self.layers(observation)  # type: ignore[no-any-return]
