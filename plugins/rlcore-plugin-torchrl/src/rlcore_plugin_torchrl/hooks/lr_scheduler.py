"""Moves learning rates by a scheduler of torch, or by a schedule of rlcore."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch

from rlcore.errors import HookArgumentError, HookError
from rlcore.learners import Scheduled, ScheduledOfPart, bind
from rlcore.state import optimizer_of
from rlcore.types import Scheduler, Stateful, Stepping, offers
from rlcore_plugin_torchrl.hooks.stock import StockHook

if TYPE_CHECKING:
    from rlcore.types import ScriptTrainer

Interval = Literal["batch", "optim"]


class LRSchedulerHook(StockHook):
    """Lets a scheduler take a step after each batch or after each optimisation step.

    Once registered, it waits while no optimisation step was taken since its last call, so that a learning rate stays as
    it is while frames are only collected.

    Args:
        scheduler: of torch; or of rlcore, with `target` and `value(initial, progress)`, which then sets its number in
            every optimizer that is part of the trainer's checkpoints.
        interval: `batch`, at `post_steps`; or `optim`, at `post_optim`.

    Raises:
        HookError: another interval, or something that is no such scheduler.
    """

    default_name: ClassVar[str] = "lr_scheduler"

    def __init__(self, scheduler: Any, interval: Interval = "batch") -> None:
        if interval not in ("batch", "optim"):
            raise HookArgumentError(f"LRSchedulerHook: interval = {interval!r}: expected 'batch' or 'optim'")
        self._by_progress = offers(scheduler, Scheduler)
        if not self._by_progress and not offers(scheduler, Stepping):
            raise HookArgumentError(
                f"LRSchedulerHook: a {type(scheduler).__name__} has neither step(), as schedulers of torch have, nor "
                "target and value(initial, progress), as those of rlcore"
            )
        if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
            raise HookArgumentError(
                "LRSchedulerHook: ReduceLROnPlateau needs a metric at each step; call it in a hook of yours"
            )
        self.scheduler: Any = scheduler
        self.interval = interval
        self._trainer: ScriptTrainer | None = None
        self._scheduled: list[Scheduled | ScheduledOfPart] | None = None
        self._optimizer: Any = None
        self._last_optim_count = 0

    def attach(self, trainer: ScriptTrainer) -> None:
        """Follow the clocks of this trainer.

        Raises:
            ConfigError: a schedule by the fraction of a run that has no end.
        """
        self._trainer = trainer
        if self._by_progress:
            self.scheduler.value(1.0, trainer.progress)

    def register(self, trainer: ScriptTrainer, name: str | None = None) -> None:
        """Register it at the point of its interval."""
        trainer.register_module(name or self.default_name, self)
        trainer.register_op("post_optim" if self.interval == "optim" else "post_steps", self)
        if self._by_progress:
            trainer.register_op("setup", self.follow)

    def __call__(self) -> None:
        """Take a step of the scheduler, if an optimisation step was taken since the last call."""
        trainer = self._trainer
        if trainer is not None:
            if trainer.progress.updates == self._last_optim_count:
                return
            self._last_optim_count = trainer.progress.updates
        if self._by_progress:
            self.follow()
        else:
            self.scheduler.step()

    def follow(self) -> None:
        """Set what a schedule of rlcore moves to its value now.

        Raises:
            HookError: there is no trainer, or no optimizer.
        """
        trainer = self._trainer
        if trainer is None:
            raise HookError("LRSchedulerHook: a schedule follows a trainer's progress; call register(trainer)")
        if self._scheduled is None or trainer.optimizer is not self._optimizer:  # a script may set another one
            self._optimizer = trainer.optimizer
            self._scheduled = bind([self.scheduler], _optimizers(trainer))
        for scheduled in self._scheduled:
            scheduled.apply(trainer.progress)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the scheduler, where it has one, and the count of optimisation steps."""
        state: dict[str, Any] = {"last_optim_count": self._last_optim_count}
        if offers(self.scheduler, Stateful):
            state["scheduler"] = self.scheduler.state_dict()
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set them."""
        self._last_optim_count = state_dict["last_optim_count"]
        if "scheduler" in state_dict:
            self.scheduler.load_state_dict(dict(state_dict["scheduler"]))


def _optimizers(trainer: ScriptTrainer) -> dict[str, torch.optim.Optimizer]:
    """Return the optimizers that take part in checkpoints, by name, those of hooks included."""
    by_name: dict[str, torch.optim.Optimizer] = {}
    for name, part in trainer.app_state.items():
        optimizer = optimizer_of(part)
        if isinstance(optimizer, torch.optim.Optimizer) and not any(optimizer is other for other in by_name.values()):
            by_name[name] = optimizer
    if not by_name:
        raise HookError(
            "LRSchedulerHook: the trainer has no optimizer; hand one to Trainer, or register an OptimizerHook"
        )
    return by_name
