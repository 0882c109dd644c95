"""Optimisation steps that are more than one loss and one optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from rlcore.state import check_state
from rlcore_plugin_torchrl.algorithms.base import NamedTrainer
from rlcore_plugin_torchrl.hooks.optimization_stepper import DefaultOptimizationStepper, OptimizationStepper

if TYPE_CHECKING:
    from torch import Tensor

    from rlcore.types import ScriptTrainer


class TD3OptimizationStepper(OptimizationStepper):
    """Takes a step of the critics, and of the actor at every `policy_update_delay`-th call.

    Args:
        optimizer_actor: of the actor.
        optimizer_critic: of the critics.
        policy_update_delay: calls per step of the actor.
        zero_grad_set_to_none: whether gradients are freed rather than zeroed.
        actor_loss_key: name of the actor's loss in what is logged; 0 where it took no step.
        critic_loss_key: name of the critics' loss.
    """

    def __init__(
        self,
        optimizer_actor: torch.optim.Optimizer,
        optimizer_critic: torch.optim.Optimizer,
        *,
        policy_update_delay: int = 2,
        zero_grad_set_to_none: bool = True,
        actor_loss_key: str = "loss_actor",
        critic_loss_key: str = "loss_qvalue",
    ) -> None:
        self.optimizer_actor = optimizer_actor
        self.optimizer_critic = optimizer_critic
        self.policy_update_delay = policy_update_delay
        self.zero_grad_set_to_none = zero_grad_set_to_none
        self.actor_loss_key = actor_loss_key
        self.critic_loss_key = critic_loss_key
        self.calls = 0

    def step(self, trainer: ScriptTrainer, sub_batch: Any) -> Mapping[str, Tensor]:
        """Take a step, and hand the errors of the critics to a buffer that ranks by them."""
        self.calls += 1
        critic_loss, errors = trainer.compute_loss(sub_batch, method="value_loss")
        self._minimise(critic_loss, self.optimizer_critic, trainer)
        actor_loss = critic_loss.new_zeros(())
        if self.calls % self.policy_update_delay == 0:
            actor_loss, *_ = trainer.compute_loss(sub_batch, method="actor_loss")
            self._minimise(actor_loss, self.optimizer_actor, trainer)
        self._rank(trainer, sub_batch, errors)
        return {self.critic_loss_key: critic_loss.detach(), self.actor_loss_key: actor_loss.detach()}

    def state_dict(self) -> dict[str, Any]:
        """Return the count of calls, and the states of the optimizers."""
        return {
            "calls": self.calls,
            "optimizer_actor": self.optimizer_actor.state_dict(),
            "optimizer_critic": self.optimizer_critic.state_dict(),
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set them.

        Raises:
            StorageError: the state is of other parameters.
        """
        check_state(self.optimizer_actor, state_dict["optimizer_actor"])
        check_state(self.optimizer_critic, state_dict["optimizer_critic"])
        self.calls = state_dict["calls"]
        self.optimizer_actor.load_state_dict(state_dict["optimizer_actor"])
        self.optimizer_critic.load_state_dict(state_dict["optimizer_critic"])

    def _minimise(self, loss: Tensor, optimizer: torch.optim.Optimizer, trainer: ScriptTrainer) -> None:
        loss.backward()  # type: ignore[no-untyped-call]
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        if trainer.clip_norm is not None:
            clip = torch.nn.utils.clip_grad_norm_ if trainer.clip_grad_norm else torch.nn.utils.clip_grad_value_
            clip(parameters, trainer.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=self.zero_grad_set_to_none)

    def _rank(self, trainer: ScriptTrainer, sub_batch: Any, errors: Any) -> None:
        # both by name: asked at every sub-batch, as the buffer of a trainer can be set at any time
        update = getattr(trainer.replay_buffer, "update_tensordict_priority", None)
        if update is not None:
            key = getattr(trainer.loss_module.tensor_keys, "priority", "td_error")
            sub_batch.set(key, errors["td_error"].detach().max(0)[0])
            update(sub_batch)


class RankingStepper(DefaultOptimizationStepper):
    """Takes a step on some of the losses, and hands the priorities of the sub-batch to the trainer's buffer."""

    def step(self, trainer: ScriptTrainer, sub_batch: Any) -> dict[str, Tensor]:
        """Take a step, and return the losses."""
        losses = super().step(trainer, sub_batch)
        if isinstance(trainer, NamedTrainer) and trainer.replay is not None:
            trainer.replay.update_priority(sub_batch)
        return losses
