"""The interfaces of models: distributions over actions, policies, and the model that has both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Distribution(Protocol):
    """A family of distributions over actions; one tensor of parameters `[..., num_parameters]` picks one."""

    num_parameters: int

    def noise(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Draw everything random that `sample` needs: `[*shape, ...]`, on the generator's device."""
        ...

    def sample(self, parameters: Tensor, noise: Tensor) -> Tensor:
        """Return actions `[..., *action]`; all randomness is in `noise`."""
        ...

    def mode(self, parameters: Tensor) -> Tensor:
        """Return the deterministic action `[..., *action]`."""
        ...

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Return log-probabilities `[..., 1]` of `action`."""
        ...

    def entropy(self, parameters: Tensor) -> Tensor:
        """Return entropies `[..., 1]`, differentiable."""
        ...

    def log_prob_and_entropy(self, parameters: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return both, which share most of their work."""
        ...


@runtime_checkable
class Policy(Protocol):
    """Chooses actions during collection and evaluation. Called without gradients."""

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Draw the randomness of a whole batch at once: `[time, env, ...]`."""
        ...

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions `[env, *action]` and what `describe` needs later `[env, ...]`."""
        ...

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return further entries of the batch, such as `sample_log_prob`; once per batch, any leading shape."""
        ...

    def mode(self, observation: Tensor) -> Tensor:
        """Return the deterministic actions `[env, *action]`."""
        ...

    def refresh(self) -> None:
        """Follow the weights of the model; called before each batch and each evaluation."""
        ...


class Model(Protocol):
    """A `torch.nn.Module` whose named parts (`actor`, `critic`, …) are attributes, so that parts can share a body."""

    policy: Policy

    def parts(self) -> tuple[str, ...]:
        """Return the names of the parts that were built."""
        ...
