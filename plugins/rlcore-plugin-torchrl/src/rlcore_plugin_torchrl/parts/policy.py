"""Policies that act with an actor of TorchRL, or with its action values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import torch
from tensordict import TensorDict
from torch import Tensor

from rlcore.errors import ConfigError


class ActorPolicy:
    """Samples from the actor of a model, and takes its deterministic action in evaluations.

    Args:
        actor: of TorchRL; one without a distribution acts deterministically, with noise.
        space: of the actions.
        noise: deviation of that noise, in halves of the range of actions.
    """

    def __init__(self, actor: Any, space: gymnasium.Space[Any], noise: float) -> None:
        self._actor = actor
        self._space = space
        self._noise = noise
        self._samples = callable(getattr(actor, "get_dist", None))
        self.writes: tuple[str, ...] = ("sample_log_prob",) if self._samples else ()
        self._discrete = isinstance(space, gymnasium.spaces.Discrete)

    def write_parameters(self) -> None:
        """Write the parameters of the distribution into batches from here on."""
        self.writes = (*self.writes, *self._keys)

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the noise of a batch: uniform for discrete actions, else normal, `[time, env, number]`."""
        if self._discrete:
            assert isinstance(self._space, gymnasium.spaces.Discrete)
            uniform = torch.rand((steps, num_envs, int(self._space.n)), generator=generator, device=generator.device)
            return -(-uniform.clamp(1e-20, 1 - 1e-7).log()).log()  # Gumbel's distribution
        size = (self._space.shape or (1,))[0]
        return torch.randn((steps, num_envs, size), generator=generator, device=generator.device)

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions, and the parameters of their distribution."""
        if not self._samples:
            action = self._acted(observation)
            low, high = (torch.as_tensor(bound, device=action.device) for bound in (self._space.low, self._space.high))  # type: ignore[attr-defined]
            scale = torch.where(torch.isfinite(high - low), (high - low) / 2, torch.ones_like(high))
            return (action + self._noise * scale * noise).clamp(low, high), noise
        data = TensorDict({"observation": observation}, [len(observation)], device=observation.device)
        data = self._actor[0](data)
        parameters = torch.cat([data.get(key).float() for key in self._keys], -1)
        distribution = self._of(parameters)
        if self._discrete:
            logits = data.get("logits")
            return (logits.log_softmax(-1) + noise).argmax(-1), parameters
        return sampled(distribution, noise), parameters

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return `sample_log_prob` `[..., 1]`; nothing for an actor without a distribution."""
        if not self._samples:
            return {}
        log_prob = self._of(parameters).log_prob(action)
        described = {"sample_log_prob": log_prob.reshape(*parameters.shape[:-1], 1)}
        further = dict(zip(self._keys, parameters.chunk(len(self._keys), -1), strict=True))
        return described | {name: value for name, value in further.items() if name in self.writes}

    def mode(self, observation: Tensor) -> Tensor:
        """Return the deterministic actions."""
        if not self._samples:
            return self._acted(observation)
        distribution = self._actor.get_dist(
            TensorDict({"observation": observation}, [len(observation)], device=observation.device)
        )
        return deterministic(distribution)

    def refresh(self) -> None:
        """Do nothing: the actor is that of the model, with the weights of now."""

    @property
    def _keys(self) -> tuple[str, ...]:
        return ("logits",) if self._discrete else ("loc", "scale")

    def _of(self, parameters: Tensor) -> Any:
        parts = parameters.chunk(len(self._keys), -1)
        data = TensorDict(dict(zip(self._keys, parts, strict=True)), parameters.shape[:-1], device=parameters.device)
        return self._actor[-1].get_dist(data)

    def _acted(self, observation: Tensor) -> Tensor:
        data = TensorDict({"observation": observation}, [len(observation)], device=observation.device)
        action: Tensor = self._actor(data).get("action")
        return action


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
