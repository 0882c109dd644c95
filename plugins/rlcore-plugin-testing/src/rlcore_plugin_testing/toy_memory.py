"""A small recurrent model, in its plainest form: one state per env, and parts that are called with it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from rlcore.errors import ConfigError
from rlcore.types.context import Context
from rlcore_plugin_testing.toy import ToyDistribution


class ToyBody(nn.Module):
    """An Elman network: the next state is `tanh(A observation + B state)`, with weights of its own for both."""

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.inputs = nn.Linear(inputs, size)
        self.recurrence = nn.Linear(size, size, bias=False)

    def step(self, observation: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return the states `[row, size]` after one step of each row; `first` is `[row]` or `[row, 1]`."""
        before = torch.where(first.reshape(-1, 1), torch.zeros_like(state), state)
        return torch.tanh(self.inputs(observation) + self.recurrence(before))

    def forward(self, observation: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return the states after each row `[sample, ...]`, or after each step of `[time, sequence, ...]`."""
        if observation.ndim == 2:
            return self.step(observation, state, first)
        states = []
        for seen, begins in zip(observation, first, strict=True):
            state = self.step(seen, state, begins)
            states.append(state)
        return torch.stack(states)


class ToyMemoryPart(nn.Module):
    """A linear map of the states of a body, which may be shared."""

    def __init__(self, body: ToyBody, outputs: int) -> None:
        super().__init__()
        self.body = body
        self.head = nn.Linear(body.size, outputs)

    def forward(self, observation: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Return the outputs."""
        return self.head(self.body(observation, state, first))  # type: ignore[no-any-return]


class ToyMemoryActor(ToyMemoryPart):
    """The parameters of a distribution over actions."""

    def __init__(self, body: ToyBody, distribution: ToyDistribution) -> None:
        super().__init__(body, distribution.num_parameters)
        self.distribution = distribution


class ToyMemoryPolicy:
    """Samples from the actor, which remembers."""

    writes = ("sample_log_prob",)

    def __init__(self, actor: ToyMemoryActor) -> None:
        self._actor = actor

    def initial_state(self, num_envs: int) -> Tensor:
        """Return zeros."""
        return torch.zeros(num_envs, self._actor.body.size, device=self._actor.head.weight.device)

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the noise of a batch."""
        return self._actor.distribution.noise((steps, num_envs), generator)

    def act(self, observation: Tensor, noise: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return sampled actions, the parameters and the next state."""
        following = self._actor.body.step(observation, state, first)
        parameters = self._actor.head(following)
        return self._actor.distribution.sample(parameters, noise), parameters, following

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return `sample_log_prob`."""
        return {"sample_log_prob": self._actor.distribution.log_prob(parameters, action)}

    def mode(self, observation: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Return the likeliest actions and the next state."""
        following = self._actor.body.step(observation, state, first)
        return self._actor.distribution.mode(self._actor.head(following)), following

    def refresh(self) -> None:
        """Do nothing: the policy reads the actor's weights at each step."""


class ToyMemoryModel(nn.Module):
    """An `actor` and a `critic` over one recurrent body, for observations of one dimension."""

    class Config(BaseModel, extra="forbid"):
        """The size of the memory."""

        size: int = Field(4, ge=1, description="numbers that are remembered")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__()
        spec = context.env_spec
        shape = spec.observation_space.shape
        if shape is None or len(shape) != 1:
            raise ConfigError(f"[model] toy-memory takes observations of one dimension, not {spec.observation_space}")
        body = ToyBody(shape[0], config.size)
        self.actor = ToyMemoryActor(body, ToyDistribution(spec.action_space))
        self.critic = ToyMemoryPart(body, 1)
        self.policy = ToyMemoryPolicy(self.actor)
        generator = torch.Generator().manual_seed(context.seed("weights"))
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.normal_(0, 0.5, generator=generator)

    def parts(self) -> tuple[str, ...]:
        """Return the names of the parts."""
        return ("actor", "critic")
