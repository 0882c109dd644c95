"""The hooks that stand for arguments of `Trainer`: its optimizer, its stepper, its updater of targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlcore.core_hooks.optimizer import OptimizerHook
from rlcore.core_hooks.target_net_updater import TargetNetUpdaterHook
from rlcore.errors import ArgumentTypeError
from rlcore.plugins.known import lend
from rlcore.training.loop import Loop
from rlcore.types.foreign import Stepping
from rlcore.types.hook_parts import HookObject
from rlcore.types.loss import Loss
from rlcore.types.optional import missing
from rlcore.types.part import with_defaults


def register_optimizers(trainer: Loop, optimizer: Any, taken_by_stepper: bool) -> None:
    """Let an optimizer take the steps, or that of each policy, unless a stepper does; its state is saved either way."""
    by_policy = optimizer if isinstance(optimizer, Mapping) else {} if optimizer is None else {"": optimizer}
    for policy, chosen in by_policy.items():
        name = f"optimizer.{policy}" if policy else "optimizer"
        if taken_by_stepper:
            trainer.register_module(name, chosen)
        else:
            hook = lend("rlcore.scripts", "OptimizerOfPolicy")(chosen, policy) if policy else OptimizerHook(chosen)
            hook.register(trainer, name)


def use_stepper(trainer: Any, stepper: Any) -> None:
    """Let a stepper take the place of loss and step; None for those.

    Raises:
        ArgumentTypeError: it has no method `step`.
    """
    if stepper is None:
        return
    if missing(stepper, Stepping):
        raise ArgumentTypeError(
            f"optimization_stepper: a {type(stepper).__name__} has no method step(trainer, sub_batch)"
        )
    with_defaults(stepper, HookObject).register(trainer)
    trainer.learner.replace_step(lambda minibatch: stepper.step(trainer, minibatch))


class Targets:
    """Moves the targets of an updater; without one, of that which the loss module brings.

    Args:
        trainer: of which the steps move them.
        updater: that was handed over, or None.
        loss: of the trainer.
    """

    def __init__(self, trainer: Loop, updater: Any, loss: Any) -> None:
        self._trainer = trainer
        updater = updater or with_defaults(loss, Loss).target_updater
        self._hook = None if updater is None else TargetNetUpdaterHook(updater)
        if self._hook is not None:
            self._hook.register(trainer)

    def step_aside(self, operation: Any) -> None:
        """Move no targets where a script registers a hook for the same updater: they would move twice."""
        updater = with_defaults(operation, HookObject).target_params_updater
        if self._hook is None or operation is self._hook or updater is not self._hook.target_params_updater:
            return
        self._trainer.unregister_op(self._hook)
        self._trainer.carried.forget("target_net_updater")
        self._hook = None
