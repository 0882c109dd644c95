"""The model component with memory: an actor and critics, each behind an LSTM or a GRU, and the policy that explores."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Self

import torch
from pydantic import Field, model_validator
from rlcore_plugin_mlp.network import MLP, Activation
from rlcore_plugin_recurrent.body import Body, BodyConfig, Kind
from rlcore_plugin_recurrent.memories import places
from rlcore_plugin_recurrent.model import PartWithMemory, RecurrentPart, RecurrentPolicy
from torch import Tensor, nn

from rlcore.types import Context, Key
from rlcore_plugin_sac.actors import DeterministicActor, StochasticActor
from rlcore_plugin_sac.box import ActionBox, squashed_normal
from rlcore_plugin_sac.critics import Critics
from rlcore_plugin_sac.model import ActorCriticModel, critics_of
from rlcore_plugin_sac.policy import NoisyPolicy, SamplingPolicy, UniformFirst
from rlcore_plugin_sac.temperature import Temperature


class RecurrentStochasticActor(RecurrentPart):
    """The parameters of a squashed normal distribution, behind a memory; its head is a `StochasticActor`.

    Attributes:
        distribution: over actions.
    """

    def __init__(self, body: Body, head: StochasticActor, place: slice) -> None:
        super().__init__(body, head, place=place)
        self.distribution = head.distribution


class RecurrentCritics(PartWithMemory):
    """N critics behind one memory, called `critics(observation, state, first, action)`.

    Args:
        body: the memory of all of them.
        head: what is known and actions to values.
        place: of the state of the memory in the carried one.

    Attributes:
        critics: how many.
        hidden: hidden sizes of each.
        quantiles: that each gives; 1: the value.
    """

    head: Critics

    def __init__(self, body: Body, head: Critics, place: slice) -> None:
        super().__init__(body, head, place)
        self.critics, self.hidden, self.quantiles = head.critics, head.hidden, head.quantiles

    def forward(self, observation: Tensor, state: Tensor, first: Tensor, action: Tensor) -> Tensor:
        """Return values `[critic, ..., quantile]` of actions `[..., action]` in the env's units, without dropout."""
        return self.head(self.known(observation, state, first), action)  # type: ignore[no-any-return]


class RecurrentUniformFirst(RecurrentPolicy):
    """Takes uniform actions for the first frames of a run, and then acts by what it remembers.

    It remembers from the first frame on, also what the critics do.

    Args:
        actor: that acts.
        parts: all that remember, in the order of their states.
        explorer: makes actions of the outputs of the actor's head.
    """

    writes: tuple[Key, ...] = ()

    def __init__(self, actor: RecurrentPart, parts: Sequence[PartWithMemory], explorer: UniformFirst) -> None:
        super().__init__(actor, parts)
        self._explorer = explorer

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the noise of a batch; see `UniformFirst`."""
        return self._explorer.draw(steps, num_envs, generator)

    def act(self, observation: Tensor, noise: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return actions `[env, action]`, the same again, since nothing more is to be described, and the next state."""
        outputs, following = self._step(observation, state, first)
        action = self._explorer.explored(outputs, noise)
        return action, action, following

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return nothing: the losses need no more than the transition."""
        return {}

    def mode(self, observation: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Return the squashed means or the actions without noise, `[env, action]`, and the next state."""
        outputs, following = self._step(observation, state, first)
        return self._explorer.best(outputs), following

    def refresh(self) -> None:
        """Follow the weights, and see whether the random frames are over."""
        super().refresh()
        self._explorer.refresh()


class RecurrentActorCriticModel(nn.Module):
    """`actor`, `critics` and `target_critics`, each with a memory of its own, as the losses `sac` and `td3` need them.

    With a stochastic actor there is `temperature` besides, else `target_actor`. The critics share one memory of the
    observations; each values what it knows with an action. The state that is carried has that of the actor, then that
    of the critics, so that replayed sequences begin with both. The targets go on from the same states by weights of
    their own. Separate memories for actor and critics are those of Ni et al. (2022, arXiv 2110.05038), section 4.

    Attributes:
        box: of the actions.
        dropout: fraction of the critics' hidden values that a loss leaves out.
        schedulable: `noise`, with a deterministic actor.

    Raises:
        ConfigError: the actions are in no bounded box; the observations are not flat, without an encoder.
    """

    class Config(BodyConfig, ActorCriticModel.Config):
        """The memories, the networks behind them, and how the policy explores."""

        cell: Kind = Field("lstm", description="the recurrent layer: lstm or gru")
        activation: Activation = Field("relu", description="tanh, relu or silu")

        @model_validator(mode="after")
        def _has_no_sde(self) -> Self:
            if self.sde:
                raise ValueError("sde: a model with a memory explores without it; leave it out, or use actor-critic")
            return self

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        distribution = squashed_normal(context.env_spec.action_space, context.device)
        self.box = ActionBox(distribution)
        self.dropout = config.dropout
        bodies = {name: Body(config.cell, config, context, name) for name in ("actor", "critics")}
        part_slices = places(bodies)
        self.critics = RecurrentCritics(
            bodies["critics"], critics_of(config, config.size, self.box, context), part_slices["critics"]
        )
        self.target_critics = copy.deepcopy(self.critics).requires_grad_(False)
        generator = torch.Generator().manual_seed(context.seed("actor"))
        outputs = self.box.size if config.actor == "deterministic" else distribution.num_parameters
        sizes = [config.size, *config.hidden, outputs]
        network = MLP(sizes, config.activation, config.initialisation, 0.01, generator)
        if config.actor == "stochastic":
            head = StochasticActor(network, distribution, (config.log_std_min, config.log_std_max))
            self.actor: RecurrentPart = RecurrentStochasticActor(bodies["actor"], head, part_slices["actor"])
            self.temperature = Temperature(config.initial_temperature)
            explorer: UniformFirst = SamplingPolicy(head, self.box, config.random_frames, context)
        else:
            deterministic = DeterministicActor(network, self.box)
            self.actor = RecurrentPart(bodies["actor"], deterministic, place=part_slices["actor"])
            self.target_actor = copy.deepcopy(self.actor).requires_grad_(False)
            noisy = NoisyPolicy(deterministic, self.box, config.random_frames, context, config.noise)
            explorer, self.schedulable = noisy, noisy.schedulable
        self.policy = RecurrentUniformFirst(self.actor, [self.actor, self.critics], explorer)

    def parts(self) -> tuple[str, ...]:
        """Return the names of the networks, and of the temperature."""
        last = "temperature" if isinstance(self.actor, RecurrentStochasticActor) else "target_actor"
        return ("actor", "critics", "target_critics", last)
