"""The policies: uniform actions at first, then those of the actor, with the noise that is theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.types import Context, Key
from rlcore_plugin_sac.actors import DeterministicActor, StochasticActor
from rlcore_plugin_sac.box import ActionBox
from rlcore_plugin_sac.first_frames import FirstFrames


class UniformFirst:
    """Actions uniform over the box for the first frames of a run; then those of a subclass, by noise of its own.

    The noise of a step is `[env, action + 1]`: its last column is 1 where the first ones are the action itself.

    Args:
        actor: with a method `raw`.
        box: of the actions.
        random_frames: how many frames.
        context: of the model.
    """

    writes: tuple[Key, ...] = ()

    def __init__(self, actor: Any, box: ActionBox, random_frames: int, context: Context) -> None:
        self._actor = actor
        self._box = box
        self._random_frames = random_frames
        self._first = FirstFrames(random_frames, context)
        self.refresh()

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the noise of a batch, `[time, env, action + 1]`; or `[time, env, action]` without random frames."""
        size, device = self._box.size, generator.device
        normal = self._scaled(self._normal(steps, num_envs, generator))
        if not self._random_frames:
            return normal
        if not self._begins:
            return torch.nn.functional.pad(normal, (0, 1))
        random = self._first.of_batch(steps, num_envs, device)
        uniform = torch.rand(steps, num_envs, size, generator=generator, device=device).mul_(2).sub_(1)
        normal = torch.where(random, self._box.from_unit(uniform), normal)
        return torch.cat([normal, random.to(normal.dtype)], -1)

    def foretold(self, noise: Tensor) -> tuple[Tensor, list[bool]] | None:
        """Return the uniform actions `[time, env, action]`, and in which steps all are; None once they are over."""
        if not self._begins or not noise.is_cpu:
            return None
        return noise[..., :-1].contiguous(), [0.0 not in row for row in noise[..., -1].tolist()]

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions `[env, action]`, and the same again: nothing more is to be described."""
        action = self.explored(self._forward(observation), noise)
        return action, action

    def explored(self, outputs: Tensor, noise: Tensor) -> Tensor:
        """Return actions `[env, action]`, by the outputs of the actor `[env, outputs]` and the noise of the step."""
        uniform = noise[..., : self._box.size] if self._random_frames else noise
        action = self._explore(outputs, uniform)
        return torch.where(noise[..., -1:] > 0, uniform, action) if self._begins else action

    def best(self, outputs: Tensor) -> Tensor:
        """Return the actions of an evaluation `[env, action]`, by the outputs of the actor `[env, outputs]`."""
        raise NotImplementedError

    def mode(self, observation: Tensor) -> Tensor:
        """Return the actions of an evaluation, `[env, action]`."""
        return self.best(self._forward(observation))

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return nothing: the losses need no more than the transition."""
        return {}

    def refresh(self) -> None:
        """Follow the weights, and see whether the random frames are over."""
        self._begins = self._first.are_now()
        self._forward: Callable[[Tensor], Tensor] = self._actor.raw()

    def _normal(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Return standard normal noise `[time, env, action]`; here, new in each step."""
        return torch.randn(steps, num_envs, self._box.size, generator=generator, device=generator.device)

    def _scaled(self, normal: Tensor) -> Tensor:
        """Return the noise of the actor's actions, of standard normal noise; here, as it is."""
        return normal

    def _explore(self, outputs: Tensor, noise: Tensor) -> Tensor:
        """Return actions of the outputs of the actor and the noise `[env, action]`."""
        raise NotImplementedError


class SamplingPolicy(UniformFirst):
    """Samples from the distribution of the actor; evaluations take its mode (Haarnoja et al., 2018)."""

    _actor: StochasticActor

    def best(self, outputs: Tensor) -> Tensor:
        """Return the squashed means, `[env, action]`."""
        return self._actor.distribution.mode(outputs)

    def mean(self, observation: Tensor) -> Tensor:
        """Return the mean actions, `[env, action]`."""
        return self._actor.distribution.mean(self._forward(observation))

    def _explore(self, outputs: Tensor, noise: Tensor) -> Tensor:
        return self._actor.distribution.sample(outputs, noise)


class NoisyPolicy(UniformFirst):
    """Adds normal noise to the actions of a deterministic actor, and clips them (Fujimoto et al., 2018).

    Evaluations have no noise.

    Attributes:
        schedulable: `noise`, the standard deviation in halves of the range of each action.
    """

    _actor: DeterministicActor

    def __init__(self, actor: Any, box: ActionBox, random_frames: int, context: Context, noise: float) -> None:
        self.schedulable = Noise(noise)
        super().__init__(actor, box, random_frames, context)

    def best(self, outputs: Tensor) -> Tensor:
        """Return the actions without noise, `[env, action]`."""
        return self._box.from_unit(outputs)

    def _scaled(self, normal: Tensor) -> Tensor:
        return normal.mul_(self.schedulable["noise"])

    def _explore(self, outputs: Tensor, noise: Tensor) -> Tensor:
        return self._box.from_unit((outputs + noise).clamp_(-1, 1))


class Noise(dict[str, float]):
    """The one number `noise`, between 0 and 1.

    Args:
        noise: in the beginning.
    """

    def __init__(self, noise: float) -> None:
        super().__init__(noise=noise)

    def __setitem__(self, name: str, value: float) -> None:
        """Set it.

        Raises:
            ConfigError: it is wider than the range of the actions.
        """
        if not 0 <= value <= 1:
            raise ConfigError(
                f"[scheduler] target 'model.noise': {value:.4g} is no standard deviation in halves of the range of the "
                "actions; it must be between 0 and 1"
            )
        super().__setitem__(name, value)
