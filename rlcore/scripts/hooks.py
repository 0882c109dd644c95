"""The hooks that stand for arguments of `Trainer`: its optimizer, its stepper, its updater of targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlcore.errors import ArgumentTypeError
from rlcore.scripts.attributes import Argument, put_in_place
from rlcore.stock.optimizer import OptimizerHook
from rlcore.stock.target_net_updater import TargetNetUpdaterHook

if TYPE_CHECKING:
    from rlcore.scripts.trainer import Trainer


class ScriptHooks:
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

    def follow_optimizer(self, trainer: Trainer) -> None:
        """Let the trainer's optimizer take the steps, unless a stepper does; its state is saved in either case."""
        new, stepper = trainer._settings.optimizer, trainer._settings.optimization_stepper
        if new is None or stepper is not None:
            self._take_away(trainer)
            if new is not None or self._saved_optimizer is not None:
                _save_as_module(trainer, "optimizer", self._saved_optimizer, new)
            self._saved_optimizer = new
        elif self.optimizer is not None:
            self.optimizer.use(new)
        else:
            if self._saved_optimizer is not None:
                put_in_place(trainer, "optimizer", self._saved_optimizer, None)
                self._saved_optimizer = None
            hook = OptimizerHook(new)
            hook.register(trainer)
            self.optimizer = hook

    def follow_stepper(self, trainer: Trainer) -> None:
        """Let the trainer's stepper take the place of loss and step.

        Raises:
            ArgumentTypeError: it has no method `step`.
        """
        new = trainer._settings.optimization_stepper
        if new is not None and not callable(getattr(new, "step", None)):
            raise ArgumentTypeError(
                f"optimization_stepper: a {type(new).__name__} has no method step(trainer, sub_batch)"
            )
        if self._stepper is not None:
            trainer._operations.forget(self._stepper)
            put_in_place(trainer, "optimization_stepper", self._stepper, None)
        self._stepper = new
        if hasattr(new, "register"):
            new.register(trainer)
        trainer.learner.replace_step(  # type: ignore[attr-defined]
            None if new is None else lambda minibatch: new.step(trainer, minibatch)
        )

    def follow_targets(self, trainer: Trainer) -> None:
        """Move the targets of the trainer's updater, or of that which the loss module brings."""
        settings = trainer._settings
        updater = settings.target_net_updater or getattr(settings.loss_module, "target_updater", None)
        hook = None if updater is None else TargetNetUpdaterHook(updater)
        if self.targets is not None:
            trainer._operations.forget(self.targets)
            put_in_place(trainer, "target_net_updater", self.targets, None)
        self.targets = hook
        if hook is not None:
            hook.register(trainer)

    def step_aside(self, trainer: Trainer, operation: Any) -> None:
        """Move no targets where a script registers a hook for the same updater: they would move twice."""
        updater = getattr(operation, "target_params_updater", None)
        if self.targets is None or operation is self.targets or updater is not self.targets.target_params_updater:
            return
        trainer._operations.forget(self.targets)
        put_in_place(trainer, "target_net_updater", self.targets, None)
        self.targets = None

    def _take_away(self, trainer: Trainer) -> None:
        if self.optimizer is not None:
            trainer._operations.forget(self.optimizer)
            put_in_place(trainer, "optimizer", self.optimizer, None)
            self.optimizer = None


def _save_as_module(trainer: Trainer, name: str, old: Any, new: Any) -> None:
    if old is not None or new is None:
        put_in_place(trainer, name, old, new)
    else:
        trainer.register_module(name, new)


def _follow_stepper(trainer: Trainer) -> None:
    trainer._script_hooks.follow_stepper(trainer)
    trainer._script_hooks.follow_optimizer(trainer)


class HookArguments:
    """The arguments of `Trainer` that stand for hooks, each as an attribute of its name."""

    optimization_stepper = Argument(_follow_stepper)
    optimizer = Argument(lambda trainer: trainer._script_hooks.follow_optimizer(trainer))
    target_net_updater = Argument(lambda trainer: trainer._script_hooks.follow_targets(trainer))
