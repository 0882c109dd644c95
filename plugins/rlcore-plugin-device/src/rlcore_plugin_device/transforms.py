"""Transforms of a run whose observations are tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

import torch
from torch import Tensor, nn

from rlcore.envs import changes_observations
from rlcore.errors import ConfigError
from rlcore.types import Stateful, Transform, defines, offers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlcore_plugin_device.tensor_env import TensorStep


class TensorTransform(Protocol):
    """A transform that has its methods for tensors too."""

    def step_tensors(self, observation: Tensor, first: Tensor) -> Tensor:
        """Return what `step` makes of observations `[env, *shape]`.

        Args:
            observation: not to be changed; on the device of the run.
            first: `[env]`, bool, marks those that begin an episode.
        """
        ...

    def final_tensors(self, observation: Tensor) -> Tensor:
        """Return what `final` makes of last observations `[env, *shape]`; called before the `step_tensors` after it."""
        ...


class TakesTensors(Protocol):
    """A transform of observations that takes each step in; before `final_tensors` and `step_tensors` of that step."""

    def take_tensors(self, action: Tensor, reward: Tensor) -> None:
        """Take in what `action` and `read_reward` do, which change neither.

        Args:
            action: `[env, *shape]`, that of the policy as transforms behind this one make it.
            reward: `[env]`, float32, of the env.
        """
        ...


class Transforms:
    """Transforms between envs of tensors and a policy, in order.

    A transform that keeps nothing may have `observation_module` and `action_module`, with which policies are exported;
    any other one is a `TensorTransform`.

    Args:
        transforms: of the run.
        device: of the envs.

    Raises:
        ConfigError: one works on arrays alone.
    """

    def __init__(self, transforms: Sequence[Transform], device: torch.device) -> None:
        observing = [transform for transform in transforms if changes_observations(transform)]
        for transform in transforms:
            if not _takes_tensors(transform, transform in observing):
                raise ConfigError(
                    f"[[transform]]: {type(transform).__name__} works on arrays, and [collector] use = 'device' has "
                    "tensors; leave it out, or take [collector] use = 'local'",
                    remedy={"collector": {"use": "local"}},
                )
        self._observing = [_of_tensors(transform, device) for transform in observing]
        self._taking: list[tuple[TakesTensors, nn.Sequential]] = []
        actions: list[nn.Module] = []
        for transform in reversed(transforms):
            if _takes_steps(transform):
                self._taking.append((cast("TakesTensors", transform), nn.Sequential(*actions)))
            elif defines(transform, Transform.action):
                actions.append(transform.action_module().to(device))
        self.action = nn.Sequential(*actions)
        self._sum = self._zero = torch.zeros((), dtype=torch.float64, device=device)

    def begun(self, observation: Tensor) -> Tensor:
        """Return what the policy sees where every env has begun an episode, `[env, *shape]`."""
        return self._seen(observation, torch.ones(len(observation), dtype=torch.bool, device=observation.device))

    def stepped(self, action: Tensor, step: TensorStep) -> TensorStep:
        """Return the step that an action of the policy led to with the observations that the policy sees."""
        if not self._observing:
            return step
        for taking, changed in self._taking:
            taking.take_tensors(changed(action), step.reward)
        ended, final = step.terminated | step.truncated, step.final_observation
        if final.is_floating_point():
            self._sum = self._sum + final.sum(dtype=torch.float64)
        for transform in self._observing:
            final = transform.final_tensors(final)
        observation = self._seen(step.observation, ended)
        places = ended.reshape(-1, *[1] * (observation.dim() - 1))
        return step._replace(observation=observation, final_observation=torch.where(places, final, observation))

    def take_sum(self) -> Tensor:
        """Return a number that is finite if all observations since the last call were, 0-d."""
        taken, self._sum = self._sum, self._zero
        return taken

    def _seen(self, observation: Tensor, first: Tensor) -> Tensor:
        if self._observing and observation.is_floating_point():
            self._sum = self._sum + observation.sum(dtype=torch.float64)
        for transform in self._observing:
            observation = transform.step_tensors(observation, first)
        return observation


class _Module:
    """A transform that keeps nothing, by its module."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module

    def step_tensors(self, observation: Tensor, first: Tensor) -> Tensor:
        return self.final_tensors(observation)

    def final_tensors(self, observation: Tensor) -> Tensor:
        return self._module(observation)  # type: ignore[no-any-return]


def _takes_tensors(transform: Transform, observes: bool) -> bool:
    if _takes_steps(transform):
        return _has_methods(transform)
    # one with a state may learn with each step, and its module is what it knows at one moment
    as_module = defines(transform, Transform.observation_module) and not offers(transform, Stateful)
    sees = not observes or as_module or _has_methods(transform)
    changes = not defines(transform, Transform.action) or defines(transform, Transform.action_module)
    return sees and changes and not defines(transform, Transform.read_reward)


def _takes_steps(transform: Transform) -> bool:
    return offers(type(transform), TakesTensors)


def _of_tensors(transform: Transform, device: torch.device) -> TensorTransform:
    if _has_methods(transform):
        return cast("TensorTransform", transform)
    return _Module(transform.observation_module().to(device))


def _has_methods(transform: Transform) -> bool:
    # of its class: one that is put on a leaf of a dict passes on what that of an array has
    return offers(type(transform), TensorTransform)
