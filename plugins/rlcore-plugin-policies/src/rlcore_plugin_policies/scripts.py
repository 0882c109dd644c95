"""Several policies in a script: a loss and an optimizer for each, by its name, over its own part of the batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from rlcore import OptimizerHook
from rlcore.errors import ArgumentTypeError, ConfigError, did_you_mean
from rlcore.learners import rows_of
from rlcore.types import Learner, Loss, ScriptTrainer, is_mapping, with_defaults


class LossOfPolicies(nn.Module):
    """The losses of several policies as one module.

    A minibatch has the part of each policy under its name, a TensorDict or a mapping. What a loss returns has the name
    of the policy in front: `prey/loss_objective`. A policy whose part has no rows is left out.

    Args:
        losses: from the part of a policy to its losses, by the name of the policy.

    Attributes:
        policies: the names.

    Raises:
        ArgumentTypeError: one cannot be called, or there is none.
        ConfigError: a name that cannot stand in those of weights.
    """

    def __init__(self, losses: Mapping[str, Callable[[Any], Any]]) -> None:
        super().__init__()
        if not losses:
            raise ArgumentTypeError("loss_module: the mapping from policies to losses is empty")
        self.policies = tuple(losses)
        self._losses = dict(losses)
        for name, loss in losses.items():
            if not callable(loss):
                raise ArgumentTypeError(f"loss_module[{name!r}]: a {type(loss).__name__} cannot be called")
            if not isinstance(name, str) or not name.isidentifier() or name in dir(self):
                raise ConfigError(f"loss_module[{name!r}]: a policy cannot be called so; take letters, digits and '_'")
            if isinstance(loss, nn.Module):
                self.add_module(name, loss)
        updaters = {name: with_defaults(loss, Loss).target_updater for name, loss in losses.items()}
        updaters = {name: updater for name, updater in updaters.items() if updater is not None}
        self.target_updater = _Updaters(updaters) if updaters else None

    def __getitem__(self, name: str) -> Any:
        """Return the loss of a policy."""
        return self._losses[name]

    def forward(self, minibatch: Any) -> dict[str, Tensor]:
        """Return the losses of all policies that have rows.

        Raises:
            ConfigError: a policy has no part in the minibatch.
        """
        merged: dict[str, Tensor] = {}
        for name, loss in self._losses.items():
            part = _part(minibatch, name)
            if not rows_of(part):
                continue
            losses = loss(part)
            if not is_mapping(losses):
                raise ArgumentTypeError(
                    f"the loss of policy {name!r} returned {type(losses).__name__}; expected a TensorDict or a mapping"
                )
            merged |= {f"{name}/{key}": value for key, value in losses.items()}
        return merged


class OptimizerOfPolicy(OptimizerHook):
    """Minimises the losses of one policy with an optimizer of its own.

    Args:
        optimizer: of torch.
        policy: whose name is in front of the losses.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, policy: str) -> None:
        super().__init__(optimizer)
        self._prefix = f"{policy}/"

    def attach(self, trainer: ScriptTrainer) -> None:
        """Take note of the trainer.

        Raises:
            ConfigError: it trains with other processes.
        """
        learner = trainer.learner
        group = with_defaults(learner, Learner).group
        if group is not None and group.size > 1:
            raise ConfigError(
                "loss_module: a script trains several policies in one process; several processes train them from a "
                "config with [model.NAME] and [ranks]"
            )
        super().attach(trainer)

    def __call__(self, losses: Any, clip_grad_norm: bool, clip_norm: float | None, index: int) -> dict[str, Tensor]:
        """Take a step where the policy has losses, and return those of all with the norm of its gradients."""
        part = {key.removeprefix(self._prefix): loss for key, loss in losses.items() if key.startswith(self._prefix)}
        if not part:
            return dict(losses.items())
        stepped = super().__call__(part, clip_grad_norm, clip_norm, index)
        return {**dict(losses.items()), f"{self._prefix}grad_norm": stepped[f"grad_norm_{index}"]}


class _Updaters:
    """Moves the target networks of several policies."""

    def __init__(self, updaters: Mapping[str, Any]) -> None:
        self._updaters = updaters

    def step(self) -> None:
        """Move all."""
        for updater in self._updaters.values():
            updater.step()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of each, by the name of its policy."""
        return {name: updater.state_dict() for name, updater in self._updaters.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the state of each."""
        for name, updater in self._updaters.items():
            updater.load_state_dict(state[name])


def loss_of_policies(loss: Any, optimizer: Any, stepper: Any) -> Any:
    """Return the losses of several policies as one; any other loss as it is.

    Args:
        loss: a mapping from policies to losses, or one loss.
        optimizer: likewise.
        stepper: that takes the place of loss and step, or None.

    Raises:
        ArgumentTypeError: a loss cannot be called, or there is none.
        ConfigError: the optimizers are not those of the policies.
    """
    joined = LossOfPolicies(loss) if isinstance(loss, Mapping) else loss
    if optimizer is not None and stepper is None:
        _check_optimizers(joined.policies if isinstance(joined, LossOfPolicies) else (), optimizer)
    return joined


def _check_optimizers(policies: tuple[str, ...], optimizer: Any) -> None:
    """Refuse optimizers that are not those of the policies.

    Raises:
        ConfigError: names one that has no optimizer, or an optimizer without a policy.
    """
    if not isinstance(optimizer, Mapping):
        raise ConfigError(
            f"optimizer: loss_module has the policies {', '.join(policies)}; give an optimizer for each, "
            f"{{{policies[0]!r}: ..., ...}}"
        )
    if not policies:
        raise ConfigError("optimizer: several of them by name are for a loss_module by name, {policy: loss}")
    for name in optimizer:
        if name not in policies:
            raise ConfigError(
                f"optimizer[{name!r}]: there is no such policy{did_you_mean(str(name), policies)}; loss_module has "
                f"{', '.join(policies)}"
            )
    if missing := [name for name in policies if name not in optimizer]:
        raise ConfigError(f"optimizer: policy {missing[0]!r} of loss_module has none")


def _part(minibatch: Any, name: str) -> Any:
    keys = list(minibatch.keys())
    if name not in keys:
        raise ConfigError(
            f"the batch has no part of policy {name!r}; it has {', '.join(map(str, keys))}. Batches of several "
            "policies have the rows of each under its name"
        )
    return minibatch[name]
