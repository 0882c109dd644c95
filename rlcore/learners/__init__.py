"""One update: the gradient step, the optimizers that take it, their schedules, and target networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.learners.inputs import inputs_of as inputs_of
    from rlcore.learners.inputs import mean_of as mean_of
    from rlcore.learners.optimizers import OptimizerConfig as OptimizerConfig
    from rlcore.learners.optimizers import parameters_of as parameters_of
    from rlcore.learners.targets import TargetConfig as TargetConfig
    from rlcore.learners.targets import TargetUpdater as TargetUpdater

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.learners.inputs": "inputs_of mean_of",
        "rlcore.learners.optimizers": "OptimizerConfig parameters_of",
        "rlcore.learners.targets": "TargetConfig TargetUpdater",
    },
)
