"""One optimisation step: loss, backward, clip, step, targets; and the schedules.

`update` of the base calls `take_step`, that `minimise` for each turn, and that `backward` and `apply`. What a run has
besides, as noise, several ranks, or the compiled update of rlcore-plugin-compile, is put around `minimise` once, when
the learner is built.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Literal

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.errors import ConfigError, MissingPluginError, NumericalError
from rlcore.learners import GradientStep, JointGradients, Minimise, Turn, Updating
from rlcore.plugins import lend
from rlcore.types import FREE_AT_RESUME, Context, Key, Loss, done_by, with_defaults
from rlcore_plugin_gradient.modes import in_training, trained_layers
from rlcore_plugin_gradient.noise import noise_of
from rlcore_plugin_gradient.paces import (
    Paces,
    check_losses,
    check_optimizers,
    check_trained,
    every_of,
    losses_of,
    takes_turns,
)
from rlcore_plugin_gradient.schedules import ScheduledOfPart, bind
from rlcore_plugin_gradient.statistics import Statistics, statistics_of

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
        self._on_device = context.device.type != "cpu"  # each number that is read is waited for
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
        self.turn.due = next(iter(self._paces.at(1)), self.turn.due)  # for a hook that steps before the first update
        self._schedules = bind(context.schedulers, self.optimizers, context.built)
        self._of_parts = {each.scheduler.target: each for each in self._schedules if isinstance(each, ScheduledOfPart)}
        self._joint = JointGradients(context.group, self._steps) if context.group.size > 1 else None
        self._noise = noise_of(self._loss, context)
        self._layers = trained_layers(self._loss)
        self._targets: Any = with_defaults(self._loss, Loss).target_updater
        self._compiled: Any = self._compiled_update(context) if config.compile else None
        self._beside: Any = self._side_by_side(config, context) if config.parallel is not False else None
        self._minimise = self._with_all_around(statistics_of(self._loss, context.group, self._steps))
        self.apply_schedules()  # what a schedule begins with need not be the value of the config

    def take_step(self, minibatch: Mapping[Key, Tensor]) -> Mapping[str, Tensor]:
        """Minimise the losses that are due, then move the targets; return losses, metrics and `grad_norm`, detached."""
        turns = self._paces.at(self.progress.updates + 1)
        turn = self.turn = Turn(minibatch, minibatch, turns)
        metrics: dict[str, Tensor] = {}
        for turn.due in turns:
            metrics.update(self._minimise(turn))
        if self._targets is not None:
            self._targets.step()
        return metrics

    def minimise(self, turn: Turn) -> Mapping[str, Tensor]:
        """Take the losses of a turn, at the weights as they are, and step."""
        hooks, names = self._hooks, turn.due.names
        losses = self._loss(turn.entries) if names is None else self._loss(turn.entries, names)
        losses = hooks.post_loss(losses, turn.minibatch, self)
        if hooks.used("optimizer"):
            turn.losses = losses
            return hooks.optimizer(losses, turn.minibatch, self)
        return self.apply(self.backward(losses))

    def step(self, losses: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Take the step of a hook at `optimizer`, on its losses; return these and the norms of the gradients."""
        return self.apply(self.backward(losses))

    def backward(self, losses: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Take the gradients of every optimizer that is due, all at the same weights; return the losses, detached."""
        if not self._checked:
            check_losses(self._named_steps, losses.keys())
            self._checked = True
        numbers = self.turn.due.numbers
        for number in numbers:
            self._steps[number].backward(losses, self._alone, last=number == numbers[-1])
        if self._joint is not None:
            self._joint.average(self.turn.rows or 0, numbers)
        return {name: value.detach() if value.requires_grad else value for name, value in losses.items()}

    def apply(self, metrics: dict[str, Tensor]) -> dict[str, Tensor]:
        """Clip and step with every optimizer that is due; return metrics with the norms of their gradients.

        A step whose gradients or losses are not finite changes no parameter, and is found by `end_iteration`.
        """
        for number in self.turn.due.numbers:
            try:
                metrics[self._norms[number]] = self._steps[number].apply()
            except ConfigError as error:
                raise ConfigError(f"[optimizer] {tuple(self.optimizers)[number]!r}: {error}") from error
        return metrics

    def hooked(self) -> bool:
        """Return whether a hook comes between loss and step; scripts may register one between two iterations."""
        return self._hooks.used("optimizer") or self._hooks.used("post_loss")

    def end_iteration(self) -> None:
        """Move the schedules, after checking that every step of the iteration was finite.

        A device is asked at the end of iterations that end with a row of metrics, an evaluation or a checkpoint.

        Raises:
            NumericalError: one was not.
        """
        if not self._on_device or self._hooks.asked(0):
            self.check_finite()
        self.apply_schedules()

    def check_finite(self) -> None:
        """Read the flags of non-finite steps.

        Raises:
            NumericalError: a step was not finite, or one too many; no parameter was changed by it.
        """
        flags = self._flags
        skipped = sum(torch.stack(flags).tolist() if self._on_device else map(float, flags))
        if skipped:
            for flag in flags:
                flag.zero_()
            self.skipped_updates += int(skipped)
            found = (
                f"{int(skipped)} optimisation steps {'up to' if self._on_device else 'of'} iteration "
                f"{self.progress.iterations} had a loss or gradient that is not finite; they changed no parameter"
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

        Raises:
            NumericalError: a step on a device was not finite, which nobody has read yet.
        """
        if self._on_device:
            self.check_finite()
        state: dict[str, Any] = {"skipped_updates": self.skipped_updates}
        if self._targets is not None:
            state["targets"] = self._targets.state_dict()
        if self._noise is not None:
            state["noise"] = self._noise.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set counts and noise, and follow the progress and the optimizers, which were restored before."""
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

    def _with_all_around(self, statistics: Statistics | None) -> Minimise:
        """Return `minimise` with everything around it that this run has, the innermost first."""
        minimise: Minimise = self.minimise
        for special in (self._beside, statistics, self._joint, self._compiled, self._noise):
            if special is not None:
                minimise = special.around(minimise, self)
        return in_training(self._layers)(minimise) if self._layers else minimise

    def _compiled_update(self, context: Context) -> Any:
        build = lend("rlcore.learners", "compiled_update")
        return build(self._loss, self._named_steps, self._schedules, self._joint, context, self.hooked())

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
        return build(config.parallel, self._loss, self._steps, context, self.hooked(), config.compile)
