"""Policies that act with an actor of TorchRL, or with its action values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import torch
from tensordict import TensorDict
from torch import Tensor, nn

from rlcore.errors import ConfigError


class ActionDistribution:
    """The distribution of an actor of TorchRL, as a family of its parameters in one tensor.

    Args:
        head: the last module of a `ProbabilisticActor`, which makes the distribution.
        space: of the actions.

    Attributes:
        keys: names of the parameters, each of one size.
        num_parameters: their number.
    """

    def __init__(self, head: Any, space: gymnasium.Space[Any]) -> None:
        self._head = head
        self._is_discrete = isinstance(space, gymnasium.spaces.Discrete)
        self.keys = ("logits",) if self._is_discrete else ("loc", "scale")
        size = int(space.n) if isinstance(space, gymnasium.spaces.Discrete) else (space.shape or (1,))[0]
        self._size = size
        self.num_parameters = size * len(self.keys)

    def of(self, parameters: Tensor) -> Any:
        """Return the distribution of TorchRL that has these parameters `[..., num_parameters]`."""
        data = TensorDict(self.named(parameters), parameters.shape[:-1], device=parameters.device)
        return self._head.get_dist(data)

    def named(self, parameters: Tensor) -> dict[str, Tensor]:
        """Return the parameters by name."""
        return dict(zip(self.keys, parameters.chunk(len(self.keys), -1), strict=True))

    def noise(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Sample noise `[*shape, number]`: of Gumbel's distribution for discrete actions, else normal."""
        if not self._is_discrete:
            return torch.randn((*shape, self._size), generator=generator, device=generator.device)
        uniform = torch.rand((*shape, self._size), generator=generator, device=generator.device)
        return -(-uniform.clamp(1e-20, 1 - 1e-7).log()).log()

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return the actions that the noise picks."""
        if self._is_discrete:
            return (parameters.log_softmax(-1) + noise).argmax(-1)
        return sampled(self.of(parameters), noise)

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the deterministic actions."""
        return parameters.argmax(-1) if self._is_discrete else deterministic(self.of(parameters))

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Return log-probabilities `[..., 1]`."""
        log_prob: Tensor = self.of(parameters).log_prob(action)
        return log_prob.reshape(*parameters.shape[:-1], 1)

    def entropy(self, parameters: Tensor) -> Tensor:
        """Return entropies `[..., 1]`."""
        entropy: Tensor = self.of(parameters).entropy()
        return entropy.reshape(*parameters.shape[:-1], 1)

    def log_prob_and_entropy(self, parameters: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return both."""
        return self.log_prob(parameters, action), self.entropy(parameters)


class Actor(nn.Module):
    """An actor of TorchRL, called with observations.

    Args:
        module: of TorchRL; one without a distribution acts deterministically.
        space: of the actions.

    Attributes:
        module: the same.
        distribution: of the actions; an actor without one has no such attribute.
    """

    def __init__(self, module: Any, space: gymnasium.Space[Any]) -> None:
        super().__init__()
        self.module = module
        self.is_stochastic = callable(getattr(module, "get_dist", None))
        if self.is_stochastic:
            self.distribution = ActionDistribution(module[-1], space)

    def forward(self, observation: Tensor) -> Tensor:
        """Return the parameters of the distribution `[..., num_parameters]`, or actions `[..., *action]`."""
        data = TensorDict({"observation": observation}, observation.shape[:1], device=observation.device)
        if not self.is_stochastic:
            action: Tensor = self.module(data).get("action")
            return action
        data = self.module[0](data)
        return torch.cat([data.get(key) for key in self.distribution.keys], -1)


class ActorPolicy:
    """Samples from the actor of a model, and takes its deterministic action in evaluations.

    Args:
        actor: of the model.
        space: of the actions.
        noise: of a deterministic actor: deviation of the noise, in halves of the range of actions.
    """

    def __init__(self, actor: Actor, space: gymnasium.Space[Any], noise: float) -> None:
        self._actor = actor
        self._space: Any = space
        self._noise = noise
        self.writes: tuple[str, ...] = ("sample_log_prob",) if actor.is_stochastic else ()

    def write_parameters(self) -> None:
        """Write the parameters of the distribution into batches from here on."""
        self.writes = (*self.writes, *self._actor.distribution.keys)

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the noise of a batch, `[time, env, number]`."""
        if self._actor.is_stochastic:
            return self._actor.distribution.noise((steps, num_envs), generator)
        return torch.randn((steps, num_envs, *self._space.shape), generator=generator, device=generator.device)

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions, and the parameters of their distribution."""
        output = self._actor(observation)
        if self._actor.is_stochastic:
            return self._actor.distribution.sample(output, noise), output
        low, high = (torch.as_tensor(bound, device=output.device) for bound in (self._space.low, self._space.high))
        half = torch.where(torch.isfinite(high - low), (high - low) / 2, torch.ones_like(high))
        return (output + self._noise * half * noise).clamp(low, high), noise

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return `sample_log_prob` `[..., 1]`, and perhaps the parameters; nothing for a deterministic actor."""
        if not self._actor.is_stochastic:
            return {}
        distribution = self._actor.distribution
        described = {"sample_log_prob": distribution.log_prob(parameters, action)}
        further = distribution.named(parameters)
        return described | {name: value for name, value in further.items() if name in self.writes}

    def mode(self, observation: Tensor) -> Tensor:
        """Return the deterministic actions."""
        output: Tensor = self._actor(observation)
        return self._actor.distribution.mode(output) if self._actor.is_stochastic else output

    def refresh(self) -> None:
        """Do nothing: the actor is that of the model, with the weights of now."""


class EpsilonGreedyPolicy:
    """Takes the best action by the values of the model, or a random one.

    Args:
        model: has `action_value`.
        config: has the shares of random actions.
        progress: the clocks of the run.
    """

    writes = ()

    def __init__(self, model: Any, config: Any, progress: Any) -> None:
        self._model = model
        self._config = config
        self._progress = progress
        self._epsilon = config.epsilon_start

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample whether to act at random, and how: uniform numbers `[time, env, 2]`."""
        return torch.rand((steps, num_envs, 2), generator=generator, device=generator.device)

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions, and nothing to describe."""
        values = self._values(observation)
        random = (noise[..., 1] * values.shape[-1]).long()
        return torch.where(noise[..., 0] < self._epsilon, random, values.argmax(-1)), noise[..., :0]

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return nothing."""
        return {}

    def mode(self, observation: Tensor) -> Tensor:
        """Return the best actions."""
        return self._values(observation).argmax(-1)

    def refresh(self) -> None:
        """Follow the progress of the run."""
        config = self._config
        share = min(1.0, self._progress.fraction / config.epsilon_fraction)
        self._epsilon = config.epsilon_start + share * (config.epsilon - config.epsilon_start)

    def _values(self, observation: Tensor) -> Tensor:
        data = TensorDict({"observation": observation}, [len(observation)], device=observation.device)
        values: Tensor = self._model.acting(data)
        return values


def sampled(distribution: Any, noise: Tensor) -> Tensor:
    """Return the actions that standard normal noise picks from a distribution made of a normal one.

    Raises:
        ConfigError: it is another one.
    """
    inner = distribution
    transforms: list[Any] = []
    while not isinstance(inner, torch.distributions.Normal):
        transforms = [*(getattr(inner, "transforms", None) or ()), *transforms]
        following = getattr(inner, "base_dist", None)
        if following is None:
            raise ConfigError(
                f"[model] distribution: actions cannot be picked by noise from {type(distribution).__name__}; take one "
                "made of a normal distribution, such as TanhNormal or IndependentNormal"
            )
        inner = following
    action = inner.loc + inner.scale * noise
    for transform in transforms:
        action = transform(action)
    return action


def deterministic(distribution: Any) -> Tensor:
    """Return the deterministic action of a distribution, as TorchRL takes it, or its mode or mean."""
    for name in ("deterministic_sample", "mode", "mean"):
        try:
            action: Tensor = getattr(distribution, name)
            return action
        except (AttributeError, NotImplementedError):
            continue
    raise ConfigError(f"[model] distribution: {type(distribution).__name__} has no deterministic action")
