"""The steps of one module: its optimizers, the sum over the processes, and schedules of its learning rates."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.learners import GradientStep, JointGradients
from rlcore.types import Group

if TYPE_CHECKING:
    from rlcore_plugin_learners.config import AlgorithmConfig, Schedule


class Scheduled:
    """A setting that is linear between points, and constant before and after them.

    Args:
        points: `[[steps, value], ...]`, in the order of steps from 0 on; or one value.
        name: of the setting.

    Raises:
        ConfigError: they are no such points.
    """

    def __init__(self, points: Schedule, name: str = "lr") -> None:
        pairs = [[0, points]] if isinstance(points, int | float) else points
        try:
            self._steps = [int(steps) for steps, _ in pairs]
            self._values = [float(value) for _, value in pairs]
        except (TypeError, ValueError):
            raise ConfigError(f"{name} is {points!r}; it takes a number, or [[0, first], [steps, last]]") from None
        rising = all(a < b for a, b in zip(self._steps, self._steps[1:], strict=False))
        if not self._steps or self._steps[0] != 0 or not rising or not all(value >= 0 for value in self._values):
            raise ConfigError(f"{name} is {points!r}; its steps rise from 0 on, and no value is below 0")

    def at(self, steps: int) -> float:
        """Return the value after so many sampled steps."""
        after = bisect_right(self._steps, steps)
        if after == len(self._steps):
            return self._values[-1]
        (left, right), (first, last) = self._steps[after - 1 : after + 1], self._values[after - 1 : after + 1]
        return first + (last - first) * (steps - left) / (right - left)


class ModuleSteps:
    """The gradient steps of a module, by the name of their optimizer.

    Args:
        group: the processes that train together.
        config: settings of the module.

    Attributes:
        named: the steps.
        joint: averages gradients over the processes; None for one alone.
    """

    def __init__(self, group: Group, config: AlgorithmConfig) -> None:
        self.named: dict[str, GradientStep] = {}
        self.joint: JointGradients | None = None
        self._schedules: dict[str, Scheduled | None] = {}
        self._group = group
        self._clip = config.grad_clip
        self._by_value = config.grad_clip_by == "value"

    def add(
        self, name: str, optimizer: torch.optim.Optimizer, device: torch.device, schedule: Scheduled | None
    ) -> None:
        """Add an optimizer.

        Raises:
            ConfigError: the name is taken.
        """
        if name in self.named:
            raise ConfigError(f"there is an optimizer {name!r} already")
        norm, value = (None, self._clip) if self._by_value else (self._clip, None)
        self.named[name] = GradientStep(optimizer, norm, device, max_value=value)
        self._schedules[name] = schedule
        if self._group.size > 1:
            self.joint = JointGradients(self._group, list(self.named.values()))

    def parameters(self) -> Iterator[Tensor]:
        """Yield the parameters of all optimizers."""
        for step in self.named.values():
            yield from step.parameters

    def apply(self, loss: Tensor | None, rows: int) -> dict[str, Tensor]:
        """Step with the gradients in the parameters, and return their norms by optimizer.

        Args:
            loss: that they are of, detached; None where there were no rows here.
            rows: how many there were.
        """
        if loss is not None:
            self.note(loss)
        if self.joint is not None:
            self.joint.average(rows)
        return {name: step.apply() for name, step in self.named.items()}

    def note(self, loss: Tensor) -> None:
        """Note the loss, detached, that the gradients in the parameters are of."""
        for step in self.named.values():
            step.note({"loss": loss})

    def apply_as_is(self) -> None:
        """Step with the gradients in the parameters, without a limit; those without any do not step."""
        for step in self.named.values():
            if step.waiting_gradients():
                limits = step.max_norm, step.max_value
                step.max_norm = step.max_value = None
                step.apply()
                step.max_norm, step.max_value = limits
            step.note({"loss": torch.zeros_like(step.skipped)})

    def follow(self, sampled: int) -> None:
        """Set the learning rates to what they are after so many sampled steps."""
        for name, schedule in self._schedules.items():
            if schedule is not None:
                for group in self.named[name].optimizer.param_groups:
                    group["lr"] = schedule.at(sampled)

    def forget(self) -> None:
        """Drop the gradients of an update that failed."""
        for step in self.named.values():
            step.forget()

    def skipped(self) -> int:
        """Return how many steps were skipped since this was asked for last."""
        flags = [step.skipped for step in self.named.values()]
        count = int(sum(map(float, flags)))
        if count:
            for flag in flags:
                flag.zero_()
        return count
