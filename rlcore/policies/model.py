"""Several models as one: every env is acted in by the policy of its agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from rlcore.errors import ConfigError
from rlcore.policies.joint import Form, Joint
from rlcore.policies.shares import Shares
from rlcore.types import EnvSpec, Key, Policy, has_memory
from rlcore.types.optional import EntryWriter, WithPolicy, offers

if TYPE_CHECKING:
    import gymnasium


class JointModel(nn.Module):
    """The models of several policies.

    Their weights have the names of the policies in front: `hunters.actor.…`. It has no parts: losses, estimators and
    optimizers see the model of their own policy.

    Args:
        models: by the name of their policy.
        shares: which envs are whose.
        specs: what each policy knows of its envs.
        spec: of all envs, as the transforms leave them.

    Attributes:
        shares: the same.
        policy: acts in all envs.

    Raises:
        ConfigError: a model has no policy, or one with a state.
    """

    def __init__(
        self, models: Mapping[str, nn.Module], shares: Shares, specs: Mapping[str, EnvSpec], spec: EnvSpec
    ) -> None:
        super().__init__()
        self.shares = shares
        policies: dict[str, Policy] = {}
        for name in models:
            model: Any = models[name]
            if not offers(model, WithPolicy):
                raise ConfigError(f"[model.{name}]: {type(model).__name__} has no policy, so that nobody could act")
            if has_memory(model):
                raise ConfigError(
                    f"[model.{name}]: the policy of {type(model).__name__} has a state, which one of several policies "
                    "cannot have; take one without, such as mlp, and show it earlier observations by a transform "
                    "(frame-stack)"
                )
            policies[name] = model.policy
            self.add_module(name, models[name])
        self.policy = JointPolicy(policies, shares, specs, spec)

    def of(self, name: str) -> Any:
        """Return the model of one policy."""
        return self.get_submodule(name)

    def parts(self) -> tuple[str, ...]:
        """Return the names of the policies, each a model of its own."""
        return self.shares.names


class JointPolicy:
    """Lets each policy act in its own envs; the arguments of its methods are those of all envs.

    Args:
        policies: by name.
        shares: which envs are whose.
        specs: what each knows of its envs.
        spec: of all envs.

    Attributes:
        writes: what any of them adds to batches.
        observation: of the observations of all.
        action: of the actions of all.
    """

    def __init__(
        self, policies: Mapping[str, Policy], shares: Shares, specs: Mapping[str, EnvSpec], spec: EnvSpec
    ) -> None:
        self._policies = {name: policies[name] for name in shares.names}
        self.writes: tuple[Key, ...] = tuple(
            dict.fromkeys(key for policy in policies.values() if offers(policy, EntryWriter) for key in policy.writes)
        )
        self.observation = Joint(shares, _observations(specs))
        self.action = Joint(shares, shape=tuple(spec.action_space.shape or ()), dtype=_dtype(spec.action_space))
        self.described: dict[Key, Joint] = {}
        self._shares = shares
        self._noise = Joint(shares)
        self._parameters = Joint(shares)

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Return the noise of all, drawn by one policy after the other."""
        noise = {
            name: policy.draw(steps, len(self._shares.envs(name, num_envs)), generator)
            for name, policy in self._policies.items()
        }
        return self._noise.put(noise, num_envs, 1)

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return the actions of all, and what `describe` needs."""
        actions, parameters = {}, {}
        for name, policy in self._policies.items():
            actions[name], parameters[name] = policy.act(
                self.observation.take(name, observation, 0), self._noise.take(name, noise, 0)
            )
        num_envs = observation.shape[0]
        return self.action.put(actions, num_envs, 0), self._parameters.put(parameters, num_envs, 0)

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[Any, Tensor]:
        """Return what any of them says of its actions; zeros in the envs of those who do not say it."""
        described: dict[Key, dict[str, Tensor]] = {}
        for name, policy in self._policies.items():
            own = self._parameters.take(name, parameters, 1), self.action.take(name, action, 1)
            entries: Mapping[Any, Tensor] = policy.describe(*own)
            for key, value in entries.items():
                described.setdefault(key, {})[name] = value
        for key in described:
            self.described.setdefault(key, Joint(self._shares))
        return {key: self.described[key].put(values, action.shape[1], 1) for key, values in described.items()}

    def mode(self, observation: Tensor) -> Tensor:
        """Return the deterministic actions of all."""
        actions = {}
        for name, policy in self._policies.items():
            own = self.observation.take(name, observation, 0)
            if len(own):  # of fewer envs than a game has agents, some policies have none
                actions[name] = policy.mode(own)
        return self.action.put(actions, observation.shape[0], 0)

    def refresh(self) -> None:
        """Let each follow its weights."""
        for policy in self._policies.values():
            policy.refresh()


def _observations(specs: Mapping[str, EnvSpec]) -> dict[str, Form]:
    spaces = {name: spec.observation_space for name, spec in specs.items()}
    return {name: (tuple(space.shape or ()), _dtype(space)) for name, space in spaces.items()}


def _dtype(space: gymnasium.Space[Any]) -> torch.dtype:
    """Return the dtype in which batches hold the elements of a space."""
    import numpy as np

    from rlcore.envs.transformed import observation_dtype

    return torch.from_numpy(np.zeros(0, observation_dtype(space))).dtype
