"""One optimisation step: loss, post_loss, backward, clip, step, targets, post_optim; and the schedules.

The compiled step is in `compiled.py`. Collecting is somewhere else entirely.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.adam import AdamState
from rlcore.context import Context
from rlcore.errors import ConfigError, NumericalError, did_you_mean
from rlcore.hooks import LoopHooks
from rlcore.targets import TargetUpdater
from rlcore.types import Key, Scheduler

if TYPE_CHECKING:
    from rlcore.compiled import CompiledStep

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Schedule:
    """A scheduler bound to the optimizer whose number it sets."""

    scheduler: Scheduler
    number: str
    optimizer: torch.optim.Optimizer
    initial: float


class GradientLearner:
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
            "stop", description="a loss or gradient that is not finite: stop, or skip the update"
        )
        skip_budget: int = Field(100, ge=0, description="skipped updates of a run after which it stops all the same")

    def __init__(self, config: Config, context: Context) -> None:
        self.model = context.model
        self.optimizers = context.optimizers
        self.progress = context.progress
        self._loss: Any = context.loss
        self._hooks: LoopHooks = context.hooks
        self._max_grad_norm = config.max_grad_norm
        self.skipped_updates = 0
        self._skip_budget = config.skip_budget if config.on_nonfinite == "skip" else 0
        self._steps = [
            OptimizerStep(optimizer, config.max_grad_norm, context.device) for optimizer in self.optimizers.values()
        ]
        self._schedules = _bind(context.parts.get("schedulers", []), self.optimizers)
        self._owned = self._hooks.used("optimizer")
        self._split = self._owned or self._hooks.used("post_loss")
        self._compiled: CompiledStep | None = self._compile(context) if config.compile else None
        self._targets: TargetUpdater | None = getattr(self._loss, "target_updater", None)

    def update(self, minibatch: Mapping[Key, Tensor]) -> Mapping[str, Tensor]:
        """Take one optimisation step.

        Returns:
            What the loss returned, detached, and `grad_norm`, on the device, with what `post_optim_log` adds.
        """
        hooks = self._hooks
        minibatch = hooks.process_optim_batch(minibatch, self)
        if self._compiled is not None and not self._split:
            metrics: Mapping[str, Tensor] = self._compiled(minibatch)
        else:
            losses = self._loss(minibatch)
            losses = hooks.post_loss(losses, minibatch, self)
            metrics = hooks.optimizer(losses, minibatch, self) if self._owned else self.step(losses)
        self.progress.updates += 1
        if self._targets is not None:
            self._targets.step()
        hooks.post_optim(minibatch, self)
        return hooks.post_optim_log(metrics, minibatch, self)

    def step(self, losses: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Do zero_grad, backward, clipping and step for every optimizer; return losses and gradient norms, detached.

        A step whose gradients or losses are not finite changes no parameter, and is found by `end_iteration`.
        """
        metrics = {name: value.detach() for name, value in losses.items()}
        alone = len(self._steps) == 1
        for step in self._steps:  # every gradient is taken at the same weights, before any step changes them
            step.backward(losses, alone)
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
        steps = self._compiled.skipped if self._compiled is not None else [step.skipped for step in self._steps]
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
            value = schedule.scheduler.value(schedule.initial, self.progress)
            for group in schedule.optimizer.param_groups:
                group[schedule.number] = value

    def scheduled(self) -> dict[str, float]:
        """Return the numbers worth logging: the learning rate of each optimizer."""
        several = len(self.optimizers) > 1
        return {
            f"lr/{name}" if several else "lr": float(optimizer.param_groups[0]["lr"])
            for name, optimizer in self.optimizers.items()
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the counts of skipped updates and of the targets; model and optimizers have their own names."""
        state: dict[str, Any] = {"skipped_updates": self.skipped_updates}
        if self._targets is not None:
            state["targets"] = self._targets.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the counts, and follow the restored progress and optimizers."""
        self.skipped_updates = state["skipped_updates"]
        if self._targets is not None:
            self._targets.load_state_dict(state["targets"])
        self.apply_schedules()
        if self._compiled is not None:
            self._compiled.reload()

    def _compile(self, context: Context) -> CompiledStep | None:
        from rlcore.compiled import CompiledStep, check_compiler

        check_compiler(context.device)
        if self._split:
            log.warning(
                "[learner] compile: a hook between loss and step splits the update, which then runs eagerly "
                "(a compiled update takes a third to two thirds of the time)"
            )
            return None
        steps = [(step.optimizer, step.names) for step in self._steps]
        return CompiledStep(self._loss, steps, self._max_grad_norm, context.heart)


class OptimizerStep:
    """The gradient step of one optimizer. Skips, on the device, a step that is not finite.

    Attributes:
        skipped: how many steps were skipped, a 0-d tensor on the device.
        names: the losses that it minimises; empty for all.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, max_norm: float | None, device: torch.device) -> None:
        self.optimizer = optimizer
        self.names: tuple[str, ...] = getattr(optimizer, "losses", ())
        self.skipped = torch.zeros((), device=device)
        self._max_norm = max_norm
        self._parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self._adam: AdamState | None = None
        self._total = torch.zeros((), device=device)
        self._taken: tuple[Tensor | None, ...] | None = None

    def backward(self, losses: Mapping[str, Tensor], alone: bool) -> None:
        """Take the gradients of the losses that this optimizer minimises.

        Args:
            losses: of the loss.
            alone: whether no other optimizer follows; then the graph is freed.
        """
        total = total_loss(losses, self.names)
        self._total = total.detach()
        if not alone:
            self._taken = torch.autograd.grad(total, self._parameters, retain_graph=True, allow_unused=True)
            return
        for parameter in self._parameters:
            parameter.grad = None
        total.backward()  # type: ignore[no-untyped-call]

    def apply(self) -> Tensor:
        """Take the step, and return the norm of the gradients before clipping."""
        if self._taken is not None:
            for parameter, gradient in zip(self._parameters, self._taken, strict=True):
                parameter.grad = gradient
            self._taken = None
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        norm: Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        zero = (norm + self._total) * 0.0  # not a number where either is not finite
        not_finite = (zero != 0).to(norm.dtype)
        self.skipped += not_finite
        if len(gradients) == len(self._parameters) and AdamState.fits(self.optimizer):
            self._fused_step(gradients, norm, not_finite)
        elif not bool(not_finite):
            self._plain_step(norm)
        return norm

    def _fused_step(self, gradients: list[Tensor], norm: Tensor, not_finite: Tensor) -> None:
        """Let the fused kernel divide the gradients and skip: it reads both numbers on the device."""
        if self._adam is None or not self._adam.is_current():
            self._adam = AdamState(self.optimizer)
        scale = None if self._max_norm is None else (norm / self._max_norm).clamp_(min=1.0)
        self._adam.fused_step(gradients, scale, not_finite)

    def _plain_step(self, norm: Tensor) -> None:
        if self._max_norm is not None:
            torch.nn.utils.clip_grads_with_norm_(self._parameters, self._max_norm, norm, foreach=True)
        self.optimizer.step()


def total_loss(losses: Mapping[str, Tensor], names: tuple[str, ...] = ()) -> Tensor:
    """Return the sum of the named losses, or of all that are called `loss_*`.

    Raises:
        ConfigError: a name that the loss does not return, or nothing to minimise.
    """
    for name in names:
        if name not in losses:
            raise ConfigError(f"[optimizer] losses: the loss returns no {name!r}{did_you_mean(name, losses)}")
    chosen = [value for name, value in losses.items() if (name in names if names else name.startswith("loss"))]
    if not chosen:
        raise ConfigError(f"the loss returned nothing to minimise: its keys are {', '.join(losses)}, none is loss_*")
    return sum(chosen[1:], chosen[0])


def _bind(schedulers: list[Scheduler], optimizers: Mapping[str, torch.optim.Optimizer]) -> list[Schedule]:
    """Find the numbers that the schedulers set.

    Raises:
        ConfigError: no such optimizer or number.
    """
    bound = []
    for scheduler in schedulers:
        name, _, number = scheduler.target.rpartition(".")
        if name and name not in optimizers:
            raise ConfigError(f"[scheduler] target: no optimizer {name!r}{did_you_mean(name, optimizers)}")
        chosen = [optimizers[name]] if name else list(optimizers.values())
        for optimizer in chosen:
            if number not in optimizer.defaults:
                raise ConfigError(
                    f"[scheduler] target: the optimizer has no number {number!r}"
                    f"{did_you_mean(number, optimizer.defaults)}"
                )
            initial = float(optimizer.defaults[number])
            bound.append(Schedule(scheduler, number, optimizer, initial))
    return bound
