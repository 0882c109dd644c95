"""Several models as one: every env is acted in by the policy of its agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from rlcore.envs import observation_dtype
from rlcore.errors import ConfigError
from rlcore.types import EnvSpec, Key, Policy, has_memory, policy_of
from rlcore_plugin_policies.joint import Form, Joint, form_of
from rlcore_plugin_policies.shares import Shares

if TYPE_CHECKING:
    import gymnasium


class JointModel(nn.Module):
    """The models of several policies.

    Their weights have the names of the policies in front: `hunters.actor.…`. It has no parts: losses, estimators and
    optimizers see the model of their own policy.

    Args:
        models: by the name of their policy.
        shares: which envs are whose.
        spec: of all envs, as the transforms leave them.
        device: where the models are.

    Attributes:
        shares: the same.
        policy: acts in all envs.

    Raises:
        ConfigError: a model has no policy, or one with a state.
    """

    def __init__(
        self,
        models: Mapping[str, nn.Module],
        shares: Shares,
        spec: EnvSpec,
        device: torch.device,
    ) -> None:
        super().__init__()
        self.shares = shares
        policies: dict[str, Policy] = {}
        for name in models:
            model: Any = models[name]
            if policy_of(model) is None:
                raise ConfigError(f"[model.{name}]: {type(model).__name__} has no policy, so that nobody could act")
            if has_memory(model):
                raise ConfigError(
                    f"[model.{name}]: the policy of {type(model).__name__} has a state, which one of several policies "
                    "cannot have; take one without, such as mlp, and show it earlier observations by a transform "
                    "(frame-stack)"
                )
            policies[name] = model.policy
            self.add_module(name, models[name])
        specs = {name: shares.spec(name, spec) for name in models}
        self.policy = JointPolicy(policies, shares, specs, spec, device)

    def of(self, name: str) -> Any:
        """Return the model of one policy."""
        return self.get_submodule(name)

    def parts(self) -> tuple[str, ...]:
        """Return the names of the policies, each a model of its own."""
        return self.shares.names


class JointPolicy:
    """Lets each policy act in its own envs; the arguments of its methods are those of all envs.

    Each policy acts once on zeros, so that what it gives has a known form from the beginning, in every process.

    Args:
        policies: by name.
        shares: which envs are whose.
        specs: what each knows of its envs.
        spec: of all envs.
        device: of the models.

    Attributes:
        writes: what any of them adds to batches.
        observation: of the observations of all.
        action: of the actions of all.
        described: of what is said of actions, by its key.
    """

    def __init__(
        self,
        policies: Mapping[str, Policy],
        shares: Shares,
        specs: Mapping[str, EnvSpec],
        spec: EnvSpec,
        device: torch.device,
    ) -> None:
        self._policies = {name: policies[name] for name in shares.names}
        self._shares = shares
        spaces = {name: spec.observation_space for name, spec in specs.items()}
        inputs: dict[str, Form] = {name: (tuple(space.shape or ()), _dtype(space)) for name, space in spaces.items()}
        forms = {name: _Forms.of(policy, inputs[name], device) for name, policy in self._policies.items()}
        self.observation = Joint(shares, inputs)
        space = spec.action_space
        actions = {name: form.action for name, form in forms.items()}
        self.action = Joint(shares, actions, tuple(space.shape or ()), _dtype(space))
        self._noise = Joint(shares, {name: form.noise for name, form in forms.items()})
        self._parameters = Joint(shares, {name: form.parameters for name, form in forms.items()})
        keys = dict.fromkeys(key for form in forms.values() for key in form.described)
        self.described: dict[Key, Joint] = {
            key: Joint(shares, {name: form.described[key] for name, form in forms.items() if key in form.described})
            for key in keys
        }
        self.writes: tuple[Key, ...] = tuple(keys)

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
        described: dict[Key, dict[str, Tensor]] = {key: {} for key in self.described}
        for name, policy in self._policies.items():
            rows = self._parameters.take(name, parameters, 1), self.action.take(name, action, 1)
            entries: Mapping[Any, Tensor] = policy.describe(*rows)
            for key, value in entries.items():
                described[key][name] = value
        return {key: self.described[key].put(values, action.shape[1], 1) for key, values in described.items()}

    def mode(self, observation: Tensor) -> Tensor:
        """Return the deterministic actions of all."""
        actions = {
            name: policy.mode(self.observation.take(name, observation, 0))
            for name, policy in self._policies.items()
            if self._shares.envs(name, len(observation))  # of fewer envs than agents, some policies have none
        }
        return self.action.put(actions, observation.shape[0], 0)

    def refresh(self) -> None:
        """Let each follow its weights."""
        for policy in self._policies.values():
            policy.refresh()


class _Forms(NamedTuple):
    """Of what form is a row of what a policy gives."""

    action: Form
    noise: Form
    parameters: Form
    described: dict[Key, Form]

    @classmethod
    def of(cls, policy: Policy, observation: Form, device: torch.device) -> _Forms:
        """Let a policy act once on zeros."""
        shape, dtype = observation
        policy.refresh()
        with torch.inference_mode():
            noise = policy.draw(1, 1, torch.Generator(device).manual_seed(0))
            action, parameters = policy.act(torch.zeros((1, *shape), dtype=dtype, device=device), noise[0])
            entries: Mapping[Any, Tensor] = policy.describe(parameters[None], action[None].to(parameters.device))
        described = {key: form_of(value, 1) for key, value in entries.items()}
        return cls(form_of(action, 0), form_of(noise, 1), form_of(parameters, 0), described)


def _dtype(space: gymnasium.Space[Any]) -> torch.dtype:
    """Return the dtype in which batches hold the elements of a space."""
    return torch.from_numpy(np.zeros(0, observation_dtype(space))).dtype
