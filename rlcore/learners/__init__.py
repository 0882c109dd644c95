"""One update: the gradient step, the optimizers that take it, their schedules, and target networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.learners.compiled import CompiledUpdate as CompiledUpdate
    from rlcore.learners.compiled import check_compiler as check_compiler
    from rlcore.learners.gradient_step import GradientStep as GradientStep
    from rlcore.learners.inputs import inputs_of as inputs_of
    from rlcore.learners.inputs import mean_of as mean_of
    from rlcore.learners.joint import JointGradients as JointGradients
    from rlcore.learners.modes import in_training as in_training
    from rlcore.learners.modes import trained_layers as trained_layers
    from rlcore.learners.optimizers import OptimizerConfig as OptimizerConfig
    from rlcore.learners.optimizers import parameters_of as parameters_of
    from rlcore.learners.paces import Due as Due
    from rlcore.learners.targets import TargetConfig as TargetConfig
    from rlcore.learners.targets import TargetUpdater as TargetUpdater

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.learners.compiled": "CompiledUpdate check_compiler",
        "rlcore.learners.gradient_step": "GradientStep",
        "rlcore.learners.inputs": "inputs_of mean_of",
        "rlcore.learners.joint": "JointGradients",
        "rlcore.learners.modes": "in_training trained_layers",
        "rlcore.learners.optimizers": "OptimizerConfig parameters_of",
        "rlcore.learners.paces": "Due",
        "rlcore.learners.targets": "TargetConfig TargetUpdater",
    },
)
