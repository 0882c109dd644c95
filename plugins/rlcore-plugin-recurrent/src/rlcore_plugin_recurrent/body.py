"""What remembers: an entrance for observations, then a recurrent layer. Parts of a model may share one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from pydantic import BaseModel, Field, PositiveInt
from rlcore_plugin_mlp.by_leaf import LeafEncoder
from rlcore_plugin_mlp.encoder import EncodedMLP
from rlcore_plugin_mlp.model import MLPModel
from rlcore_plugin_mlp.network import ACTIVATIONS, MLP, Activation
from rlcore_plugin_mlp.networks import Networks
from torch import Tensor, nn

from rlcore.types import Context
from rlcore_plugin_recurrent.cell import Cell, Initialisation
from rlcore_plugin_recurrent.gru import GRU
from rlcore_plugin_recurrent.layers import Layers
from rlcore_plugin_recurrent.lstm import LSTM

Kind = Literal["lstm", "gru"]
CELLS: dict[Kind, type[Cell]] = {"lstm": LSTM, "gru": GRU}


class BodyConfig(BaseModel, extra="forbid"):
    """The keys of a memory, for the sections of models that have one."""

    size: PositiveInt = Field(64, description="of the recurrent layer")
    layers: PositiveInt = Field(1, description="recurrent layers, each of that size")
    encoder_hidden: list[PositiveInt] = Field([64], description="layers before it; [] for none")
    activation: Activation = Field("tanh", description="after those, and between the layers behind: tanh, relu or silu")
    initialisation: Initialisation = Field("torch", description="torch (its default) or orthogonal")
    encoder: str | None = Field(None, description="'module:Name' of a network of your own before all of them")
    encoder_kwargs: dict[str, Any] = Field(default_factory=dict, description="its further arguments")
    encoders: dict[str, LeafEncoder] = Field(
        default_factory=dict, description="a network for each leaf of observations that are dicts"
    )


class Entrance(nn.Module):
    """Observations `[..., *shape]` to features `[..., inputs]`: an encoder, layers, both or neither.

    Args:
        config: says which.
        context: has the space of observations, and the seeds.
        owner: in front of the names of the seeds; none where parts share the memory.

    Attributes:
        features: how many there are.
    """

    def __init__(self, config: BodyConfig, context: Context, owner: str = "") -> None:
        super().__init__()
        space = context.env_spec.observation_space
        names = ("activation", "initialisation", "encoder", "encoder_kwargs", "encoders")
        keys: dict[str, Any] = {key: getattr(config, key) for key in names}
        networks = Networks.of(
            MLPModel.Config(hidden=config.encoder_hidden[:-1], **keys), space, context.seed(f"{owner}encoder")
        )
        self.features = networks.inputs
        self.network: MLP | EncodedMLP | None = None
        self._activation = config.activation
        self._bare: EncodedMLP | None = None
        if config.encoder_hidden:
            self.features = config.encoder_hidden[-1]
            generator = torch.Generator().manual_seed(context.seed(f"{owner}encoder_hidden"))
            self.network = networks.network(self.features, 2**0.5, generator)
        elif networks.encoder is not None:
            self._bare = EncodedMLP(networks.encoder, nn.Identity(), space.shape or ())

    def forward(self, observation: Tensor) -> Tensor:
        """Return the features."""
        if self.network is not None:
            return ACTIVATIONS[self._activation](self.network(observation))
        return observation.float() if self._bare is None else self._bare.features(observation)

    def raw(self) -> Callable[[Tensor], Tensor]:
        """Return the forward pass of rows without gradients over the weights as they lie in memory now."""
        if self.network is None:
            return self.forward
        network, activate = self.network.raw(), ACTIVATIONS[self._activation]
        return lambda observation: activate(network(observation))


class Body(nn.Module):
    """A memory: observations, a state and `first` to what is known now, `[..., size]`.

    Called as the parts of a model with memory are, with one leading dimension `[sample, ...]`, or two
    `[time, sequence, ...]`; see `rlcore.types`.

    Args:
        kind: of the recurrent layer.
        config: of the section.
        context: of the model.
        owner: the part whose own memory it is; none where parts share it.

    Attributes:
        entrance: before the recurrent layer.
        cell: the recurrent layer, or several of them.
        size: how many numbers it returns.
        state_size: how many its state has.
    """

    def __init__(self, kind: Kind, config: BodyConfig, context: Context, owner: str = "") -> None:
        super().__init__()
        prefix = f"{owner} " if owner else ""
        self.entrance = Entrance(config, context, prefix)
        generator = torch.Generator().manual_seed(context.seed(f"{prefix}memory"))
        features, sampling = self.entrance.features, (config.size, config.initialisation, generator)
        self.cell: Cell | Layers = (
            CELLS[kind](features, *sampling)
            if config.layers == 1
            else Layers(CELLS[kind], config.layers, features, *sampling)
        )
        self.size = config.size
        self.state_size = self.cell.initial_state(0).shape[-1]

    def forward(self, observation: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return what is known after each observation."""
        features = self.entrance(observation)
        if first.ndim == 3:
            return self.cell(features, state, first)  # type: ignore[no-any-return]
        return self.cell(features.unsqueeze(0), state, first.reshape(1, -1, 1)).squeeze(0)  # type: ignore[no-any-return]

    @torch.no_grad()
    def after(self, observation: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return the state after the last row of `[time, sequence, ...]`, without gradients."""
        return self.cell.after(self.entrance(observation), state, first)

    def raw(self) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Return a step without gradients: observations, states and `first` `[row]` to what is known, and states.

        Over the weights as they lie in memory now.
        """
        entrance, step = self.entrance.raw(), self.cell.raw()
        return lambda observation, state, first: step(entrance(observation), state, first)
