"""The hooks that stand for arguments of `Trainer`: its optimizer, its stepper, its updater of targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rlcore.errors import ArgumentTypeError
from rlcore.scripts.policies import OptimizerOfPolicy
from rlcore.scripts.registering import RegisteringTrainer
from rlcore.stock.optimizer import OptimizerHook
from rlcore.stock.target_net_updater import TargetNetUpdaterHook
from rlcore.types.foreign import Stepping
from rlcore.types.hook_parts import RegistersItself, TargetMover
from rlcore.types.optional import WithTargetUpdater, offers


class ArgumentHooks:
    """The hooks that a trainer registered for its arguments.

    Attributes:
        optimizers: take the steps of the trainer's optimizer, under an empty name, or of that of each policy under its
            own; empty where a stepper does, or a script's own hook.
        targets: moves the targets; None where a script registered a hook for the same updater.
    """

    def __init__(self) -> None:
        self.optimizers: dict[str, OptimizerHook] = {}
        self.targets: TargetNetUpdaterHook | None = None
        self._stepper: Any = None
        self._saved_optimizers: dict[str, Any] = {}

    def follow_optimizer(self, trainer: RegisteringTrainer) -> None:
        """Let the trainer's optimizer take the steps, unless a stepper does; its state is saved in either case."""
        new = _by_policy(trainer.optimizer)
        if trainer.optimization_stepper is not None:
            self._take_away(trainer, list(self.optimizers))
            self._save_as_modules(trainer, new)
            return
        self._save_as_modules(trainer, {})
        self._take_away(trainer, [name for name in self.optimizers if name not in new])
        for name, optimizer in new.items():
            if name in self.optimizers:
                self.optimizers[name].use(optimizer)
            else:
                hook = OptimizerOfPolicy(optimizer, name) if name else OptimizerHook(optimizer)
                hook.register(trainer, _module_name(name))
                self.optimizers[name] = hook

    def follow_stepper(self, trainer: RegisteringTrainer) -> None:
        """Let the trainer's stepper take the place of loss and step.

        Raises:
            ArgumentTypeError: it has no method `step`.
        """
        new = trainer.optimization_stepper
        if new is not None and not offers(new, Stepping):
            raise ArgumentTypeError(
                f"optimization_stepper: a {type(new).__name__} has no method step(trainer, sub_batch)"
            )
        if self._stepper is not None:
            trainer._operations.forget(self._stepper)
            trainer._replace_part("optimization_stepper", self._stepper, None)
        self._stepper = new
        if offers(new, RegistersItself):
            new.register(trainer)
        trainer.learner.replace_step(  # type: ignore[attr-defined]
            None if new is None else lambda minibatch: new.step(trainer, minibatch)
        )

    def follow_targets(self, trainer: RegisteringTrainer) -> None:
        """Move the targets of the trainer's updater, or of that which the loss module brings."""
        updater = trainer.target_net_updater or updater_of(trainer.loss_module)
        hook = None if updater is None else TargetNetUpdaterHook(updater)
        if self.targets is not None:
            trainer._operations.forget(self.targets)
            trainer._replace_part("target_net_updater", self.targets, None)
        self.targets = hook
        if hook is not None:
            hook.register(trainer)

    def step_aside(self, trainer: RegisteringTrainer, operation: Any) -> None:
        """Move no targets where a script registers a hook for the same updater: they would move twice."""
        updater = operation.target_params_updater if offers(operation, TargetMover) else None
        if self.targets is None or operation is self.targets or updater is not self.targets.target_params_updater:
            return
        trainer._operations.forget(self.targets)
        trainer._replace_part("target_net_updater", self.targets, None)
        self.targets = None

    def _take_away(self, trainer: RegisteringTrainer, names: Iterable[str]) -> None:
        for name in names:
            hook = self.optimizers.pop(name)
            trainer._operations.forget(hook)
            trainer._replace_part(_module_name(name), hook, None)

    def _save_as_modules(self, trainer: RegisteringTrainer, new: Mapping[str, Any]) -> None:
        """Save the states of optimizers by which a stepper takes the steps, in place of those before."""
        for name in dict.fromkeys([*self._saved_optimizers, *new]):
            _save_as_module(trainer, _module_name(name), self._saved_optimizers.get(name), new.get(name))
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
    return loss.target_updater if offers(loss, WithTargetUpdater) else None


def _save_as_module(trainer: RegisteringTrainer, name: str, old: Any, new: Any) -> None:
    if old is not None or new is None:
        trainer._replace_part(name, old, new)
    else:
        trainer.register_module(name, new)
