"""One optimisation step: loss, post_loss, backward, clip, step, targets, post_optim; and the schedules.

The compiled step is in `compiled.py`. Collecting is somewhere else entirely.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.errors import ConfigError, NumericalError
from rlcore.learners.base import LossNoise, Updating, noise_of
from rlcore.learners.gradient_step import GradientStep
from rlcore.learners.joint import JointGradients, rows_of
from rlcore.learners.schedules import Scheduled, ScheduledOfPart, bind
from rlcore.learners.targets import TargetUpdater
from rlcore.learners.torch_private import WatchedStep
from rlcore.types import Key
from rlcore.types.context import Context
from rlcore.types.optional import LossChooser, WithTargetUpdater, offers
from rlcore.types.settings import FREE_AT_RESUME

if TYPE_CHECKING:
    from rlcore.learners.compiled import CompiledUpdate

log = logging.getLogger(__name__)


class GradientLearner(Updating):
    """Minimises the sum of the losses by gradient steps, in this process.

    Attributes:
        model: the model.
        optimizers: by name, in the order of the config.
        progress: the clocks of the run.
        skipped_updates: optimisation steps that were not finite and changed nothing, over the whole run.
    """

    class Config(BaseModel, extra="forbid"):
        """How a step is taken."""

        max_grad_norm: float | None = Field(None, gt=0, description="clip the norm of all gradients of an optimizer")
        compile: bool = Field(False, description="compile loss, backward, clipping and step as one graph")
        on_nonfinite: Literal["stop", "skip"] = Field(
            "stop",
            description="a loss or gradient that is not finite: stop, or skip the update",
            json_schema_extra=FREE_AT_RESUME,
        )
        skip_budget: int = Field(
            100,
            ge=0,
            description="skipped updates of a run after which it stops all the same",
            json_schema_extra=FREE_AT_RESUME,
        )

    def __init__(self, config: Config, context: Context) -> None:
        self.model = context.model
        self.optimizers = context.optimizers
        super().__init__(context.hooks, context.progress, context.group)
        self._loss: Any = context.loss
        self._max_grad_norm = config.max_grad_norm
        self.skipped_updates = 0
        self._skip_budget = config.skip_budget if config.on_nonfinite == "skip" else 0
        self._steps = [
            GradientStep(optimizer, config.max_grad_norm, context.device, _losses_of(optimizer))
            for optimizer in self.optimizers.values()
        ]
        self._schedules = bind(context.schedulers, self.optimizers, context.built)
        of_parts = [schedule for schedule in self._schedules if isinstance(schedule, ScheduledOfPart)]
        self._of_parts = {schedule.scheduler.target: schedule for schedule in of_parts}
        self._joint = JointGradients(context.group, self._steps) if context.group.size > 1 else None
        self._noise: LossNoise | None = noise_of(self._loss, context)
        self._compiled: CompiledUpdate | None = self._compile(context) if config.compile else None
        self._targets: TargetUpdater | None = None
        if offers(self._loss, WithTargetUpdater):
            self._targets = self._loss.target_updater

    def take_step(self, minibatch: Mapping[Key, Tensor]) -> Mapping[str, Tensor]:
        """Take the loss and step; return the losses, the metrics of the loss and `grad_norm`, 0-d tensors."""
        metrics = self._minimise(minibatch) if self._joint is None else self._minimise_jointly(minibatch)
        if self._targets is not None:
            self._targets.step()
        return metrics

    def _minimise(self, minibatch: Mapping[Key, Tensor]) -> Mapping[str, Tensor]:
        hooks = self._hooks
        owned = hooks.used("optimizer")
        inputs = (minibatch,) if self._noise is None else (minibatch, self._noise(rows_of(minibatch)))
        if self._compiled is not None and not (owned or hooks.used("post_loss")) and self._compiled.fits():
            return self._compiled(*inputs)
        losses = self._loss(*inputs)
        losses = hooks.post_loss(losses, minibatch, self)
        return hooks.optimizer(losses, minibatch, self) if owned else self.step(losses)

    def _minimise_jointly(self, minibatch: Mapping[Key, Tensor]) -> Mapping[str, Tensor]:
        """Minimise with the other ranks; one without rows has no loss, and takes the step of the others."""
        self.rows = rows_of(minibatch)
        if self.rows:
            return self._minimise(minibatch)
        if self._noise is not None:
            self._noise(0)  # so that its generator goes on as those of the others
        split = self._hooks.used("optimizer") or self._hooks.used("post_loss")
        if self._compiled is not None and not split and self._compiled.fits():
            return self._compiled.without_rows()  # by the same kernels, and so with the same bits, as the others
        return self.step({})

    def step(self, losses: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Do zero_grad, backward, clipping and step for every optimizer; return losses and gradient norms, detached.

        A step whose gradients or losses are not finite changes no parameter, and is found by `end_iteration`.
        """
        metrics = {name: value.detach() for name, value in losses.items()}
        alone = len(self._steps) == 1
        if self._joint is None or self.rows:
            for step in self._steps:  # every gradient is taken at the same weights, before any step changes them
                step.backward(losses, alone)
        if self._joint is not None:
            self._joint.average(self.rows)
        for name, step in zip(self.optimizers, self._steps, strict=True):
            metrics["grad_norm" if alone else f"grad_norm/{name}"] = step.apply()
        return metrics

    def end_iteration(self) -> None:
        """Move the schedules, after checking that every step of the iteration was finite.

        Raises:
            NumericalError: one was not.
        """
        self.check_finite()
        self.apply_schedules()

    def check_finite(self) -> None:
        """Read the flags of non-finite steps, once per iteration.

        Raises:
            NumericalError: a step was not finite, or one too many; no parameter was changed by it.
        """
        steps = [step.skipped for step in self._steps]
        steps += self._compiled.skipped if self._compiled is not None else []
        skipped = sum(float(flag) for flag in steps)
        if skipped:
            for flag in steps:
                flag.zero_()
            self.skipped_updates += int(skipped)
            found = (
                f"{int(skipped)} optimisation steps of iteration {self.progress.iterations} had a loss or gradient "
                "that is not finite; they changed no parameter"
            )
            if self.skipped_updates > self._skip_budget:
                raise NumericalError(
                    f"{found}, and the iteration is discarded. Lower the learning rate, set [learner] max_grad_norm, "
                    "or look for the cause in rewards and observations."
                )
            log.warning("%s and were skipped, %d of %d", found, self.skipped_updates, self._skip_budget)

    def apply_schedules(self) -> None:
        """Set every scheduled number to its value now."""
        for schedule in self._schedules:
            schedule.apply(self.progress)

    def scheduled(self) -> dict[str, float]:
        """Return the numbers worth logging: the learning rate of each optimizer, and what is scheduled of parts."""
        several = len(self.optimizers) > 1
        rates = {
            f"lr/{name}" if several else "lr": float(optimizer.param_groups[0]["lr"])
            for name, optimizer in self.optimizers.items()
        }
        return rates | {target: entry.now() for target, entry in self._of_parts.items()}

    def inexact(self) -> str | None:
        """Return why a resume would not go on as this run, or None."""
        if any(step.waiting_gradients() for step in self._steps):
            return "a hook's own backward left gradients for the next step, which are not saved"
        return None

    def state_dict(self) -> dict[str, Any]:
        """Return the counts of skipped updates and of the targets, and where the noise of a loss stands, if any.

        Model and optimizers have their own names.
        """
        state: dict[str, Any] = {"skipped_updates": self.skipped_updates}
        if self._targets is not None:
            state["targets"] = self._targets.state_dict()
        if self._noise is not None:
            state["noise"] = self._noise.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set them, and follow what was restored before."""
        self.skipped_updates = state["skipped_updates"]
        if self._targets is not None:
            self._targets.load_state_dict(state["targets"])
        if self._noise is not None and "noise" in state:  # the loss may have had none before
            self._noise.load_state_dict(state["noise"])
        self.follow()

    def follow(self) -> None:
        """Follow progress and optimizers as they are now: set what is scheduled, and read their state."""
        self.apply_schedules()
        if self._compiled is not None:
            self._compiled.reload()

    def _compile(self, context: Context) -> CompiledUpdate | None:
        from rlcore.learners.compiled import CompiledUpdate, check_compiler

        check_compiler(context.device)
        if self._hooks.used("optimizer") or self._hooks.used("post_loss"):
            log.warning(
                "[learner] compile: a hook between loss and step splits the update, which then runs eagerly "
                "(a compiled update takes a third to two thirds of the time)"
            )
            return None
        if not all(WatchedStep(step.optimizer).seen for step in self._steps):
            log.warning(
                "[learner] compile: this version of torch does not show who watches the steps of an optimizer; the "
                "update runs eagerly, so that they are called (a compiled update takes a third to two thirds of the "
                "time)"
            )
            return None
        steps = [(step.optimizer, step.names) for step in self._steps]
        constant = [entry for entry in self._schedules if isinstance(entry, Scheduled) and entry.number != "lr"]
        if constant:
            raise ConfigError(
                f"[scheduler] target: with [learner] compile = true {constant[0].scheduler.target!r} would stay what "
                "it is, a constant of the compiled update; schedule lr or a number of the loss, or set compile = false"
            )
        for entry in self._of_parts.values():
            if entry.scheduler.target.startswith("loss."):
                entry.hold_as_tensor(context.device)
        return CompiledUpdate(self._loss, steps, self._max_grad_norm, context.heart, self._joint)


def _losses_of(optimizer: Any) -> tuple[str, ...]:
    """Return the losses that an optimizer minimises; none for all of them."""
    return optimizer.losses if offers(optimizer, LossChooser) else ()
