"""The hooks that stand for arguments of `Trainer`: its optimizer, its stepper, its updater of targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rlcore.core_hooks.optimizer import OptimizerHook
from rlcore.core_hooks.target_net_updater import TargetNetUpdaterHook
from rlcore.errors import ArgumentTypeError
from rlcore.scripts.policies import OptimizerOfPolicy
from rlcore.training.loop import Loop
from rlcore.types.foreign import Stepping
from rlcore.types.hook_parts import HookObject
from rlcore.types.loss import Loss
from rlcore.types.optional import missing
from rlcore.types.part import with_defaults


class ArgumentHooks:
    """The hooks that a trainer registered for its arguments.

    Args:
        trainer: with whom they are registered.

    Attributes:
        optimizers: take the steps of the trainer's optimizer, under an empty name, or of that of each policy under its
            own; empty where a stepper does, or a script's own hook.
        targets: moves the targets; None where a script registered a hook for the same updater.
    """

    def __init__(self, trainer: Loop) -> None:
        self.optimizers: dict[str, OptimizerHook] = {}
        self.targets: TargetNetUpdaterHook | None = None
        self._trainer = trainer
        self._stepper: Any = None
        self._saved_optimizers: dict[str, Any] = {}

    def use_optimizer(self, optimizer: Any) -> None:
        """Let an optimizer take the steps, unless a stepper does; its state is saved in either case."""
        new = _by_policy(optimizer)
        if self._stepper is not None:
            self._take_away(list(self.optimizers))
            self._save_as_modules(new)
            return
        self._save_as_modules({})
        self._take_away([name for name in self.optimizers if name not in new])
        for name, chosen in new.items():
            if name in self.optimizers:
                self.optimizers[name].use(chosen)
            else:
                hook = OptimizerOfPolicy(chosen, name) if name else OptimizerHook(chosen)
                hook.register(self._trainer, _module_name(name))
                self.optimizers[name] = hook

    def use_stepper(self, stepper: Any) -> None:
        """Let a stepper take the place of loss and step; None for those.

        Raises:
            ArgumentTypeError: it has no method `step`.
        """
        trainer: Any = self._trainer
        if stepper is not None and missing(stepper, Stepping):
            raise ArgumentTypeError(
                f"optimization_stepper: a {type(stepper).__name__} has no method step(trainer, sub_batch)"
            )
        if self._stepper is not None:
            self._forget("optimization_stepper", self._stepper)
        self._stepper = stepper
        with_defaults(stepper, HookObject).register(trainer)
        trainer.learner.replace_step(None if stepper is None else lambda minibatch: stepper.step(trainer, minibatch))

    def use_targets(self, updater: Any, loss: Any) -> None:
        """Move the targets of an updater; without one, of that which the loss module brings."""
        updater = updater or updater_of(loss)
        hook = None if updater is None else TargetNetUpdaterHook(updater)
        if self.targets is not None:
            self._forget("target_net_updater", self.targets)
        self.targets = hook
        if hook is not None:
            hook.register(self._trainer)

    def step_aside(self, operation: Any) -> None:
        """Move no targets where a script registers a hook for the same updater: they would move twice."""
        updater = with_defaults(operation, HookObject).target_params_updater
        if self.targets is None or operation is self.targets or updater is not self.targets.target_params_updater:
            return
        self._forget("target_net_updater", self.targets)
        self.targets = None

    def _take_away(self, names: Iterable[str]) -> None:
        for name in names:
            self._forget(_module_name(name), self.optimizers.pop(name))

    def _forget(self, name: str, hook: Any) -> None:
        """Call a hook no more, and save it no more."""
        self._trainer._operations.forget(hook)
        self._trainer.carried.replace(name, hook, None)

    def _save_as_modules(self, new: Mapping[str, Any]) -> None:
        """Save the states of optimizers by which a stepper takes the steps, in place of those before."""
        for policy in dict.fromkeys([*self._saved_optimizers, *new]):
            name, old, optimizer = _module_name(policy), self._saved_optimizers.get(policy), new.get(policy)
            if old is not None or optimizer is None:
                self._trainer.carried.replace(name, old, optimizer)
            else:
                self._trainer.register_module(name, optimizer)
        self._saved_optimizers = dict(new)


def _by_policy(optimizer: Any) -> Mapping[str, Any]:
    """Return the optimizers by policy; one for all has an empty name."""
    if isinstance(optimizer, Mapping):
        return optimizer
    return {} if optimizer is None else {"": optimizer}


def _module_name(policy: str) -> str:
    return f"optimizer.{policy}" if policy else "optimizer"


def updater_of(loss: Any) -> Any:
    """Return what moves the target networks of a loss; None for one without."""
    return with_defaults(loss, Loss).target_updater
