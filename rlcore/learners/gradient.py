"""One optimisation step: loss, post_loss, backward, clip, step, targets, post_optim; and the schedules.

`update` of the base calls `take_step`, that `_minimise` for each turn, and that `step`, which ends in `_apply`. The
compiled update and losses computed side by side are those of rlcore-plugin-compile. Collecting is somewhere else
entirely.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, Literal

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.errors import ConfigError, MissingPluginError, NumericalError
from rlcore.learners.base import Updating
from rlcore.learners.gradient_step import GradientStep
from rlcore.learners.joint import JointGradients, rows_of
from rlcore.learners.modes import in_training, trained_layers
from rlcore.learners.noise import LossNoise, noise_of
from rlcore.learners.paces import (
    Due,
    Paces,
    check_losses,
    check_optimizers,
    check_trained,
    every_of,
    losses_of,
    takes_turns,
)
from rlcore.learners.schedules import ScheduledOfPart, bind
from rlcore.learners.statistics import statistics_of
from rlcore.plugins.known import lend
from rlcore.types import Key
from rlcore.types.context import Context
from rlcore.types.loss import Loss
from rlcore.types.part import with_defaults
from rlcore.types.settings import FREE_AT_RESUME, done_by

log = logging.getLogger(__name__)

_NO_LAYERS = nullcontext()  # made once, as an update of a small network is short


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
        compile: bool = Field(
            False,
            description="compile loss, backward, clipping and step as one graph, by rlcore-plugin-compile",
            json_schema_extra=done_by("compile"),
        )
        parallel: bool | None = Field(
            None,
            description="compute losses that share no parameters side by side, each on a thread; default: where the "
            "first updates are faster so. It changes no number, and is done by rlcore-plugin-compile",
            json_schema_extra=FREE_AT_RESUME | done_by("compile"),
        )
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
            GradientStep(
                optimizer, config.max_grad_norm, context.device, losses_of(optimizer), every=every_of(optimizer)
            )
            for optimizer in self.optimizers.values()
        ]
        self._named_steps = dict(zip(self.optimizers, self._steps, strict=True))
        self._alone = len(self._steps) == 1
        self._norms = ["grad_norm" if self._alone else f"grad_norm/{name}" for name in self.optimizers]
        self._flags = [step.skipped for step in self._steps]
        self._reads_at_once = len(self._flags) > 1 and context.device.type != "cpu"  # each one read is waited for
        check_optimizers(self._named_steps)
        self._paces = Paces(self._loss, self._steps)
        if takes_turns(self._loss) and not self._paces.in_turn:
            log.warning(
                "[loss] in_turn: an optimizer without `losses` minimises all of them in one step, so that none follows "
                "another; give each loss an [[optimizer]] of its own, or set in_turn = false"
            )
        self._checked = self._paces.loss_names is not None  # otherwise the first losses are the first to know
        if self._paces.loss_names is not None:
            check_losses(self._named_steps, self._paces.loss_names)
        check_trained(self._named_steps, self._loss, self.model)
        self._due = self._paces.at(1)[0]  # what `step` minimises, which a hook may call
        self._schedules = bind(context.schedulers, self.optimizers, context.built)
        of_parts = [schedule for schedule in self._schedules if isinstance(schedule, ScheduledOfPart)]
        self._of_parts = {schedule.scheduler.target: schedule for schedule in of_parts}
        self._joint = JointGradients(context.group, self._steps) if context.group.size > 1 else None
        self._noise: LossNoise | None = noise_of(self._loss, context)
        self._statistics = statistics_of(self._loss, context.group)
        self._layers = trained_layers(self._loss)
        self._targets: Any = with_defaults(self._loss, Loss).target_updater
        self._compiled: Any = self._compiled_update(context) if config.compile else None
        self._beside: Any = self._side_by_side(config, context) if config.parallel is not False else None
        self.apply_schedules()  # what a schedule begins with need not be the value of the config

    def take_step(self, minibatch: Mapping[Key, Tensor]) -> Mapping[str, Tensor]:
        """Take the losses that are due and step; return them, the metrics of the loss and `grad_norm`, 0-d tensors.

        Nothing is computed where no optimizer steps.
        """
        turns = self._paces.at(self.progress.updates + 1)
        metrics: Mapping[str, Tensor] = {}
        moved = False  # whether the targets moved in the graph of this update
        compiled = None if self._hooked() else self._compiled
        if turns[0].numbers:
            with in_training(self._layers) if self._layers else _NO_LAYERS:
                entries = self._entries(minibatch)
                for due in turns:
                    if compiled is not None and compiled.fits():
                        moved = due is turns[-1] and compiled.moves_targets()
                        of_turn = compiled(entries, due, moved)
                    else:
                        of_turn = self._minimise(minibatch, entries, due)
                    metrics = {**metrics, **of_turn} if metrics else of_turn
        if moved:
            self._targets.step(moved=True)
        elif self._targets is not None:
            self._targets.step()
        return metrics

    def _entries(self, minibatch: Mapping[Key, Tensor]) -> Mapping[Key, Tensor] | None:
        """Return what the loss reads in all turns of an update, with its noise; None on a rank without rows."""
        if self._joint is not None:
            self.rows = rows_of(minibatch)
            if not self.rows:
                if self._noise is not None:
                    self._noise(0)  # so that its generator goes on as those of the others
                return None
        return minibatch if self._noise is None else self._noise.add_to(minibatch)

    def _minimise(
        self, minibatch: Mapping[Key, Tensor], entries: Mapping[Key, Tensor] | None, due: Due
    ) -> Mapping[str, Tensor]:
        """Take the losses that are due, at the weights as they are, and step."""
        self._due = due
        if entries is None:  # without a loss, it takes the step of the other ranks
            return self.step({})
        hooks, statistics = self._hooks, self._statistics
        if statistics is not None:
            statistics.keep(due)
        if self._beside is not None and not self._hooked():
            metrics: Mapping[str, Tensor] = self._take_beside(entries)
        else:
            losses = self._loss(entries) if due.names is None else self._loss(entries, due.names)
            losses = hooks.post_loss(losses, minibatch, self)
            if hooks.used("optimizer"):
                return self._step_by_hook(losses, minibatch)
            metrics = self.step(losses)
        if statistics is not None:
            statistics.settle(due, self._not_finite())
        return metrics

    def _step_by_hook(self, losses: dict[str, Tensor], minibatch: Mapping[Key, Tensor]) -> Mapping[str, Tensor]:
        """Let a hook take the step. Whether it was finite is said by the steps that it asked for, and by the losses."""
        hooks = self._hooks
        if self._statistics is None:
            return hooks.optimizer(losses, minibatch, self)
        for number in self._due.numbers:  # what they say is of an earlier update
            step = self._steps[number]
            step.not_finite = torch.zeros_like(step.not_finite)
        metrics = hooks.optimizer(losses, minibatch, self)
        minimised = [value.detach() for name, value in losses.items() if name.startswith("loss")]
        wrong = [(~value.isfinite()).any().float() for value in minimised]
        self._statistics.settle(self._due, self._not_finite() + wrong)
        return metrics

    def _not_finite(self) -> list[Tensor]:
        """Return of each optimizer that is due whether its last step was skipped, 0-d: 1 or 0."""
        return [self._steps[number].not_finite for number in self._due.numbers]

    def _hooked(self) -> bool:
        """Return whether a hook comes between loss and step."""
        return self._hooks.used("optimizer") or self._hooks.used("post_loss")

    def _take_beside(self, entries: Mapping[Key, Tensor]) -> dict[str, Tensor]:
        metrics = self._apply(self._beside.take(entries, self._due))
        if self._beside.over is not None:
            log.debug("the losses of an update are computed one after the other: %s", self._beside.over)
            self.close()
            self._beside = None
        return metrics

    def step(self, losses: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Do zero_grad, backward, clipping and step for every optimizer that is due; return losses and gradient norms.

        A step whose gradients or losses are not finite changes no parameter, and is found by `end_iteration`.
        """
        metrics = {name: value.detach() if value.requires_grad else value for name, value in losses.items()}
        if losses and not self._checked:
            check_losses(self._named_steps, losses.keys())
            self._checked = True
        due = self._due.numbers
        if self._joint is None or self.rows:
            for number in due:  # every gradient is taken at the same weights, before any step changes them
                self._steps[number].backward(losses, self._alone, last=number == due[-1])
        if self._joint is not None:
            self._joint.average(self.rows, due)
        return self._apply(metrics)

    def _apply(self, metrics: dict[str, Tensor]) -> dict[str, Tensor]:
        """Step with every optimizer that is due, and add the norms of their gradients."""
        number = 0
        try:
            for number in self._due.numbers:
                metrics[self._norms[number]] = self._steps[number].apply()
        except ConfigError as error:
            raise ConfigError(f"[optimizer] {tuple(self.optimizers)[number]!r}: {error}") from error
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
        flags = self._flags
        skipped = sum(torch.stack(flags).tolist() if self._reads_at_once else map(float, flags))
        if skipped:
            for flag in flags:
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
            schedule.apply(self.progress.between_iterations())

    def scheduled(self) -> dict[str, float]:
        """Return the numbers worth logging: the learning rate of each optimizer, and what is scheduled of parts."""
        several = len(self.optimizers) > 1
        rates = {
            f"lr/{name}" if several else "lr": float(optimizer.param_groups[0]["lr"])
            for name, optimizer in self.optimizers.items()
        }
        return rates | {target: entry.now() for target, entry in self._of_parts.items()}

    def close(self) -> None:
        """Let the threads of the update end."""
        if self._beside is not None:
            self._beside.close()

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

    def _compiled_update(self, context: Context) -> Any:
        build = lend("rlcore.learners", "compiled_update")
        return build(self._loss, self._named_steps, self._schedules, self._joint, context, self._hooked())

    def _side_by_side(self, config: Config, context: Context) -> Any:
        """Return what takes losses on several threads; None where this one takes all, as without the plugin."""
        if not config.parallel and (config.compile or not with_defaults(self._loss, Loss).sides):
            return None
        try:
            build = lend("rlcore.learners", "side_by_side")
        except MissingPluginError as error:
            if config.parallel:
                raise
            log.debug("the losses of an update are computed one after the other: %s", error)
            return None
        return build(config.parallel, self._loss, self._steps, context, self._hooked(), config.compile)
