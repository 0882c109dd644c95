"""The model components: heads behind one memory or each behind its own, and the policy of the actor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from pydantic import Field, PositiveInt
from rlcore_plugin_mlp.leaves import ActionMask, mask_of
from rlcore_plugin_mlp.model import Part, actor_of, head_of
from rlcore_plugin_mlp.network import MLP
from torch import Tensor, nn

from rlcore.types import Context
from rlcore_plugin_recurrent.body import Body, BodyConfig, Kind
from rlcore_plugin_recurrent.cell import Step
from rlcore_plugin_recurrent.memories import initial_states, joint_step, places


class PartWithMemory(nn.Module):
    """A memory, and what a part makes of what it knows.

    Args:
        body: the memory, which parts may share.
        head: of what is known `[..., size]`.
        place: of the state of this memory, in that which is carried for several; None where there is one memory.
    """

    def __init__(self, body: Body, head: nn.Module, place: slice | None = None) -> None:
        super().__init__()
        self.body = body
        self.head = head
        self.place = place

    def known(self, observation: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return what the memory makes of the observations, `[..., size]`.

        The arguments are those with which a part is called, as `rlcore.types` says.
        """
        return self.body(observation, self._own(state), first)  # type: ignore[no-any-return]

    def after(self, observation: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return the carried state, in which that of this memory is the one after the last row, without gradients.

        The arguments are those of a call over time, `[time, sequence, ...]`.
        """
        following = self.body.after(observation, self._own(state), first)
        if self.place is None:
            return following
        return torch.cat([state[..., : self.place.start], following, state[..., self.place.stop :]], -1)

    def _own(self, state: Tensor) -> Tensor:
        return state if self.place is None else state[..., self.place]


class RecurrentPart(PartWithMemory):
    """A head behind a memory, called `part(observation, state, first)` as `rlcore.types` says.

    Args:
        body: the memory, which parts may share.
        head: what is known `[..., size]` to outputs `[..., outputs]`; has `raw()`, see `MLP.raw`.
        mask: of the outputs, in the observations; None where all actions are allowed.
        place: of the state of this memory; see `PartWithMemory`.
    """

    def __init__(self, body: Body, head: nn.Module, mask: ActionMask | None = None, place: slice | None = None) -> None:
        super().__init__(body, head, place)
        self.mask = mask

    def forward(self, observation: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return the outputs `[..., outputs]`."""
        return self.of_known(self.known(observation, state, first), observation)

    def of_known(self, known: Tensor, observation: Tensor) -> Tensor:
        """Return the outputs, from what the memory made of the observations."""
        outputs: Tensor = self.head(known)
        return outputs if self.mask is None else self.mask(outputs, observation)

    def raw(self) -> Step:
        """Return a step of rows without gradients: to outputs and next states, over the weights as they lie now.

        The states are those of this memory alone.
        """
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

    def __init__(self, body: Body, head: Any, mask: ActionMask | None, place: slice | None = None) -> None:
        super().__init__(body, head, mask, place)
        self.distribution = head.distribution


class RecurrentPolicy:
    """A policy with the state of a part's memory; what remains is to choose an action by the outputs of the part.

    Args:
        part: that acts.
        parts: all that have a memory of their own, in the order of their states; None where there is one memory.
    """

    def __init__(self, part: RecurrentPart, parts: Sequence[PartWithMemory] | None = None) -> None:
        self._part = part
        self._parts: list[PartWithMemory] = [part] if parts is None else [*parts]
        self._step = joint_step(part, self._parts)

    def initial_state(self, num_envs: int) -> Tensor:
        """Return the state with which episodes begin."""
        return initial_states(self._parts, num_envs)

    def refresh(self) -> None:
        """Follow the weights, also after they were moved or replaced."""
        self._step = joint_step(self._part, self._parts)


class RecurrentActorPolicy(RecurrentPolicy):
    """Samples from the actor during collection; takes the mode in evaluation."""

    writes = ("sample_log_prob",)

    def __init__(self, actor: RecurrentActor, parts: Sequence[PartWithMemory] | None = None) -> None:
        super().__init__(actor, parts)
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
    shared: bool = Field(True, description="one memory for all parts, instead of one for each")
    hidden: list[PositiveInt] = Field([], description="hidden sizes of each head")
    log_std: float | None = Field(
        None,
        allow_inf_nan=False,
        description="let the log standard deviations of the actor be parameters that begin here; default: outputs",
    )


class _RecurrentModel(nn.Module):
    """Heads for each part, behind one memory or each behind its own.

    The losses `ppo` and `a2c` run a shared memory once for actor and critic. Memories of their own share no weights, so
    that the losses of actor and critic may be computed at the same time; the states of all lie side by side in the one
    that is carried, in the order of the parts, and acting brings all of them on.
    """

    kind: ClassVar[Kind]
    Config = _RecurrentConfig

    def __init__(self, config: _RecurrentConfig, context: Context) -> None:
        super().__init__()
        spec = context.env_spec
        self._parts: tuple[str, ...] = tuple(config.parts)
        mask = mask_of(spec.observation_space, spec.action_space)
        bodies, own_places = self._memories(config, context)
        for part in config.parts:
            outputs, gain, distribution = head_of(part, spec.action_space, context.device, config.log_std is not None)
            sizes = [config.size, *config.hidden, outputs]
            generator = torch.Generator().manual_seed(context.seed(part))
            head = MLP(sizes, config.activation, config.initialisation, gain, generator)
            memory = bodies[part], own_places.get(part)
            of_part = None if part == "critic" else mask
            self.add_module(part, _part(*memory, head, distribution, config.log_std, of_part))
        if config.shared and {"actor", "critic"} <= {*self._parts}:
            self.actor_and_critic = self._actor_and_critic
        if "actor" in self._parts:
            parts: Any = None if config.shared else [self.get_submodule(part) for part in self._parts]
            self.policy = RecurrentActorPolicy(self.actor, parts)  # type: ignore[arg-type]

    def parts(self) -> tuple[str, ...]:
        """Return the names of the heads."""
        return self._parts

    def _memories(self, config: _RecurrentConfig, context: Context) -> tuple[dict[str, Body], dict[str, slice]]:
        """Return the memory of each part, and where its state lies, where each has its own."""
        if config.shared:
            return dict.fromkeys(self._parts, Body(self.kind, config, context)), {}
        bodies: dict[str, Body] = {part: Body(self.kind, config, context, part) for part in self._parts}
        return bodies, places(bodies)

    def _actor_and_critic(self, observation: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        actor: Any = self.actor
        critic: Any = self.critic
        known = actor.known(observation, state, first)
        return actor.of_known(known, observation), critic.of_known(known, observation)


def _part(
    body: Body,
    place: slice | None,
    head: MLP,
    distribution: Any,
    log_std: float | None,
    mask: ActionMask | None,
) -> RecurrentPart:
    if distribution is None:
        return RecurrentPart(body, head, mask, place)
    return RecurrentActor(body, actor_of(head, distribution, log_std), mask, place)


class LSTMModel(_RecurrentModel):
    """Heads behind an LSTM, or each behind one of its own."""

    kind = "lstm"


class GRUModel(_RecurrentModel):
    """Heads behind a GRU, or each behind one of its own."""

    kind = "gru"
