"""The hooks that stand for arguments of `Trainer`: its optimizer, its stepper, its updater of targets."""

from __future__ import annotations

from typing import Any

from rlcore.errors import ArgumentTypeError
from rlcore.scripts.registering import RegisteringTrainer
from rlcore.stock.optimizer import OptimizerHook
from rlcore.stock.target_net_updater import TargetNetUpdaterHook
from rlcore.types.foreign import Stepping
from rlcore.types.hook_parts import RegistersItself, TargetMover
from rlcore.types.optional import WithTargetUpdater, offers


class ArgumentHooks:
    """The hooks that a trainer registered for its arguments.

    Attributes:
        optimizer: takes the steps of the trainer's optimizer; None where a stepper does, or a script's own hook.
        targets: moves the targets; None where a script registered a hook for the same updater.
    """

    def __init__(self) -> None:
        self.optimizer: OptimizerHook | None = None
        self.targets: TargetNetUpdaterHook | None = None
        self._stepper: Any = None
        self._saved_optimizer: Any = None

    def follow_optimizer(self, trainer: RegisteringTrainer) -> None:
        """Let the trainer's optimizer take the steps, unless a stepper does; its state is saved in either case."""
        new, stepper = trainer.optimizer, trainer.optimization_stepper
        if new is None or stepper is not None:
            self._take_away(trainer)
            if new is not None or self._saved_optimizer is not None:
                _save_as_module(trainer, "optimizer", self._saved_optimizer, new)
            self._saved_optimizer = new
        elif self.optimizer is not None:
            self.optimizer.use(new)
        else:
            if self._saved_optimizer is not None:
                trainer._replace_part("optimizer", self._saved_optimizer, None)
                self._saved_optimizer = None
            hook = OptimizerHook(new)
            hook.register(trainer)
            self.optimizer = hook

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

    def _take_away(self, trainer: RegisteringTrainer) -> None:
        if self.optimizer is not None:
            trainer._operations.forget(self.optimizer)
            trainer._replace_part("optimizer", self.optimizer, None)
            self.optimizer = None


def updater_of(loss: Any) -> Any:
    """Return what moves the target networks of a loss; None for one without."""
    return loss.target_updater if offers(loss, WithTargetUpdater) else None


def _save_as_module(trainer: RegisteringTrainer, name: str, old: Any, new: Any) -> None:
    if old is not None or new is None:
        trainer._replace_part(name, old, new)
    else:
        trainer.register_module(name, new)
