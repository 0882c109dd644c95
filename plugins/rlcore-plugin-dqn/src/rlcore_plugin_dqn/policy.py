"""The epsilon-greedy policy, with a fraction of random actions that falls over the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, Final

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.types import Key, Progress
from rlcore_plugin_dqn.layers import factorised
from rlcore_plugin_dqn.network import noise_size

_LEAST: Final = 1e-9  # below it epsilon counts as 0: `num_actions / epsilon` must fit into 64 bits
_KEYS_OF_FALL: Final = ("epsilon_end", "epsilon_fraction")


class EpsilonConfig(BaseModel, extra="forbid"):
    """Keys of the fraction of random actions."""

    epsilon_start: float = Field(1.0, ge=0, le=1, description="fraction of random actions at the beginning")
    epsilon_end: float = Field(0.05, ge=0, le=1, description="fraction of random actions in the end")
    epsilon_fraction: float = Field(0.1, gt=0, le=1, description="fraction of the run in which it falls")

    def says_how_it_falls(self) -> list[str]:
        """Return the keys that a schedule of epsilon contradicts."""
        return [key for key in self.model_dump(exclude_defaults=True) if key in _KEYS_OF_FALL]

    def at(self, progress: Progress) -> float:
        """Return the fraction at these clocks; linear, and without a state to save."""
        part = min(1.0, progress.fraction / self.epsilon_fraction)
        return self.epsilon_start + part * (self.epsilon_end - self.epsilon_start)


class Epsilon(MutableMapping[str, float]):
    """Mapping with the number `epsilon`, which a schedule may move instead of the keys of the model.

    Args:
        config: says how it falls without a schedule.
    """

    def __init__(self, config: EpsilonConfig) -> None:
        self._config = config
        self._scheduled: float | None = None

    def at(self, progress: Progress) -> float:
        """Return epsilon at these clocks: the value of a schedule, else that of the keys of the model."""
        return self._config.at(progress) if self._scheduled is None else self._scheduled

    def __getitem__(self, name: str) -> float:
        """Return the value of a schedule, or the initial one."""
        if name != "epsilon":
            raise KeyError(name)
        return self._config.epsilon_start if self._scheduled is None else self._scheduled

    def __setitem__(self, name: str, value: float) -> None:
        """Set the value, as a schedule does.

        Raises:
            ConfigError: keys of the model say how epsilon falls.
        """
        if falls := self._config.says_how_it_falls():
            raise ConfigError(
                f"[scheduler] target 'model.epsilon': [model] {' and '.join(falls)} say how it falls; leave those out, "
                "or the schedule"
            )
        self._scheduled = value

    def __delitem__(self, name: str) -> None:
        """Refuse, as epsilon always has a value."""
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        """Yield the name `epsilon`."""
        return iter(("epsilon",))

    def __len__(self) -> int:
        """Return 1."""
        return 1


class EpsilonGreedy:
    """Takes the action of the highest value, or with probability epsilon a random one (Mnih et al., 2015).

    Args:
        q_values: a module with a method `raw` that returns its forward pass, observations to `[..., action]`.
        num_actions: how many actions.
        schedule: of epsilon.
        progress: the clocks.

    Attributes:
        epsilon: the fraction of random actions in the current batch.
        schedulable: `epsilon`, which a schedule may move.
    """

    writes: tuple[Key, ...] = ()

    def __init__(self, q_values: Any, num_actions: int, schedule: EpsilonConfig, progress: Progress) -> None:
        self._q_values = q_values
        self._num_actions = num_actions
        self._progress = progress
        self.schedulable = Epsilon(schedule)
        self.refresh()

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the random actions of a batch, int64 `[time, env]`; `num_actions` and above mean the greedy action."""
        # one draw says whether and which: of `[0, num_actions / epsilon)`, the part epsilon lies below `num_actions`
        upper = self._num_actions / max(self.epsilon, _LEAST)
        drawn = torch.empty((steps, num_envs), device=generator.device).uniform_(0, upper, generator=generator)
        if self.epsilon < _LEAST:
            return torch.full_like(drawn, self._num_actions, dtype=torch.int64)
        return drawn.long()

    def foretold(self, noise: Tensor) -> tuple[Tensor, list[bool]] | None:
        """Return the random actions, int64 `[time, env]`, and in which steps all are random and need no network."""
        if not noise.is_cpu:  # reading it would wait for the device
            return None
        count = self._num_actions
        return noise, [max(row) < count for row in noise.tolist()]

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions, int64 `[env]`, twice: `describe` needs no parameters."""
        action = self.explored(self._forward(observation), observation, noise)
        return action, action

    def explored(self, values: Tensor, observation: Tensor, noise: Tensor) -> Tensor:
        """Return actions, int64 `[env]`, by their values `[env, action]`, or at random where the noise says so."""
        action = values.argmax(-1)
        # one env on the CPU: a comparison in Python is cheaper than a kernel, and most actions are greedy
        if noise.shape[0] > 1 or not noise.is_cpu or int(noise) < self._num_actions:
            action = torch.where(noise < self._num_actions, noise, action)
        return action

    def best(self, values: Tensor, observation: Tensor) -> Tensor:
        """Return the greedy actions, int64 `[env]`, by their values `[env, action]`."""
        return values.argmax(-1)

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return nothing, as the losses need the transition alone."""
        return {}

    def mode(self, observation: Tensor) -> Tensor:
        """Return the greedy actions, int64 `[env]`."""
        return self.best(self._forward(observation), observation)

    def follow(self, progress: Progress) -> None:
        """Follow other clocks, such as those of a trainer that is built after the policy."""
        self._progress = progress
        self.refresh()

    def refresh(self) -> None:
        """Set epsilon for the frames so far, and take the current weights."""
        self.epsilon = self.schedulable.at(self._progress)
        self._forward: Callable[..., Tensor] = self._q_values.raw()


class NoisyEpsilonGreedy(EpsilonGreedy):
    """Takes the action of the highest value of a noisy network, with new noise in each step and env.

    Fortunato et al., 2018. With probability epsilon, 0 by default, a random action. Evaluations use the means of the
    weights.
    """

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample for a batch, float32 `[time, env, 1 + noise]`: the number of `EpsilonGreedy.draw`, and the noise."""
        action = super().draw(steps, num_envs, generator).unsqueeze(-1)
        size = noise_size(self._q_values)
        return torch.cat([action.float(), factorised((steps, num_envs, size), generator)], -1)

    def foretold(self, noise: Tensor) -> tuple[Tensor, list[bool]] | None:
        """Return the random actions, int64 `[time, env]`, and in which steps all are random; None when epsilon is 0."""
        return super().foretold(noise[..., 0].long()) if self.epsilon else None

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions, int64 `[env]`, twice: `describe` needs no parameters."""
        action = self._forward(observation, noise[:, 1:]).argmax(-1)
        random = noise[:, 0].long()
        action = torch.where(random < self._num_actions, random, action)
        return action, action
