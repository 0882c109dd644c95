"""The model components: heads behind one memory, and the policy of the actor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field, PositiveInt
from rlcore_plugin_mlp.leaves import ActionMask, mask_of
from rlcore_plugin_mlp.model import Part, actor_of, head_of
from rlcore_plugin_mlp.network import MLP
from torch import Tensor, nn

from rlcore.types import Context
from rlcore_plugin_recurrent.body import Body, BodyConfig, Kind

StepOfPart = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


class RecurrentPart(nn.Module):
    """A head behind a memory, called `part(observation, state, first)` as `rlcore.types` says.

    Args:
        body: the memory, which parts may share.
        head: what is known `[..., size]` to outputs `[..., outputs]`; has `raw()`, see `MLP.raw`.
        mask: of the outputs, in the observations; None where all actions are allowed.
    """

    def __init__(self, body: Body, head: nn.Module, mask: ActionMask | None = None) -> None:
        super().__init__()
        self.body = body
        self.head = head
        self.mask = mask

    def forward(self, observation: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return the outputs `[..., outputs]`."""
        return self.of_known(self.body(observation, state, first), observation)

    def of_known(self, known: Tensor, observation: Tensor) -> Tensor:
        """Return the outputs, from what the memory made of the observations."""
        outputs: Tensor = self.head(known)
        return outputs if self.mask is None else self.mask(outputs, observation)

    def raw(self) -> StepOfPart:
        """Return a step of rows without gradients: to outputs and next states, over the weights as they lie now."""
        step, mask = self.body.raw(), self.mask
        head: Callable[[Tensor], Tensor] = self.head.raw()  # type: ignore[operator]

        def act(observation: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
            known, following = step(observation, state, first)
            outputs = head(known)
            return (outputs if mask is None else mask(outputs, observation)), following

        return act


class RecurrentActor(RecurrentPart):
    """The parameters of a distribution over actions.

    Attributes:
        distribution: over actions.
    """

    def __init__(self, body: Body, head: Any, mask: ActionMask | None) -> None:
        super().__init__(body, head, mask)
        self.distribution = head.distribution


class RecurrentPolicy:
    """A policy with the state of a part's memory; what remains is to choose an action by the outputs of the part.

    Args:
        part: that acts.
    """

    def __init__(self, part: RecurrentPart) -> None:
        self._part = part
        self._step = part.raw()

    def initial_state(self, num_envs: int) -> Tensor:
        """Return the state with which episodes begin."""
        return self._part.body.cell.initial_state(num_envs)

    def refresh(self) -> None:
        """Follow the weights, also after they were moved or replaced."""
        self._step = self._part.raw()


class RecurrentActorPolicy(RecurrentPolicy):
    """Samples from the actor during collection; takes the mode in evaluation."""

    writes = ("sample_log_prob",)

    def __init__(self, actor: RecurrentActor) -> None:
        super().__init__(actor)
        self._distribution = actor.distribution

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the noise of a batch `[time, env, ...]`."""
        return self._distribution.noise((steps, num_envs), generator)  # type: ignore[no-any-return]

    def act(self, observation: Tensor, noise: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return sampled actions, the outputs of the actor, and the next state."""
        outputs, following = self._step(observation, state, first)
        return self._distribution.sample(outputs, noise), outputs, following

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return `sample_log_prob` `[..., 1]`."""
        return {"sample_log_prob": self._distribution.log_prob(parameters, action)}

    def mode(self, observation: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Return the likeliest actions, and the next state."""
        outputs, following = self._step(observation, state, first)
        return self._distribution.mode(outputs), following


class _RecurrentConfig(BodyConfig):
    """The keys of both models."""

    parts: list[Part] = Field(["actor", "critic"], min_length=1, description="heads to build")
    hidden: list[PositiveInt] = Field([], description="hidden sizes of each head")
    log_std: float | None = Field(
        None,
        allow_inf_nan=False,
        description="let the log standard deviations of the actor be parameters that begin here; default: outputs",
    )


class _RecurrentModel(nn.Module):
    """Heads for each part behind one memory, which the losses `ppo` and `a2c` run once for actor and critic."""

    kind: ClassVar[Kind]
    Config = _RecurrentConfig

    def __init__(self, config: _RecurrentConfig, context: Context) -> None:
        super().__init__()
        spec = context.env_spec
        self._parts = tuple(config.parts)
        body, mask = Body(self.kind, config, context), mask_of(spec.observation_space, spec.action_space)
        for part in config.parts:
            outputs, gain, distribution = head_of(part, spec.action_space, context.device, config.log_std is not None)
            sizes = [config.size, *config.hidden, outputs]
            generator = torch.Generator().manual_seed(context.seed(part))
            head = MLP(sizes, config.activation, config.initialisation, gain, generator)
            self.add_module(part, _part(body, head, distribution, config.log_std, None if part == "critic" else mask))
        if {"actor", "critic"} <= {*self._parts}:
            self.actor_and_critic = self._actor_and_critic
        if "actor" in self._parts:
            self.policy = RecurrentActorPolicy(self.actor)  # type: ignore[arg-type]

    def parts(self) -> tuple[str, ...]:
        """Return the names of the heads."""
        return self._parts

    def _actor_and_critic(self, observation: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        actor: Any = self.actor
        critic: Any = self.critic
        known = actor.body(observation, state, first)
        return actor.of_known(known, observation), critic.of_known(known, observation)


def _part(body: Body, head: MLP, distribution: Any, log_std: float | None, mask: ActionMask | None) -> RecurrentPart:
    if distribution is None:
        return RecurrentPart(body, head, mask)
    return RecurrentActor(body, actor_of(head, distribution, log_std), mask)


class LSTMModel(_RecurrentModel):
    """Heads behind an LSTM."""

    kind = "lstm"


class GRUModel(_RecurrentModel):
    """Heads behind a GRU."""

    kind = "gru"
