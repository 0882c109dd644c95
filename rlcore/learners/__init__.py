"""One update: the gradient step, the optimizers that take it, their schedules, and target networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.learners.adam import AdamState as AdamState
    from rlcore.learners.base import Minimise as Minimise
    from rlcore.learners.base import Turn as Turn
    from rlcore.learners.clipped_step import ClippedStep as ClippedStep
    from rlcore.learners.clipped_step import chosen_losses as chosen_losses
    from rlcore.learners.gradient import GradientLearner as GradientLearner
    from rlcore.learners.gradient_step import GradientStep as GradientStep
    from rlcore.learners.gradient_step import total_loss as total_loss
    from rlcore.learners.inputs import inputs_of as inputs_of
    from rlcore.learners.inputs import mean_of as mean_of
    from rlcore.learners.joint import JointGradients as JointGradients
    from rlcore.learners.joint import rows_of as rows_of
    from rlcore.learners.modes import in_training as in_training
    from rlcore.learners.modes import trained_layers as trained_layers
    from rlcore.learners.noise import holds as holds
    from rlcore.learners.optimizers import OptimizerConfig as OptimizerConfig
    from rlcore.learners.optimizers import parameters_of as parameters_of
    from rlcore.learners.paces import Due as Due
    from rlcore.learners.paces import check_losses as check_losses
    from rlcore.learners.paces import is_separable as is_separable
    from rlcore.learners.paces import takes_turns as takes_turns
    from rlcore.learners.schedules import Scheduled as Scheduled
    from rlcore.learners.schedules import ScheduledOfPart as ScheduledOfPart
    from rlcore.learners.schedules import bind as bind
    from rlcore.learners.statistics import refuse_several as refuse_several
    from rlcore.learners.targets import TargetConfig as TargetConfig
    from rlcore.learners.targets import TargetUpdater as TargetUpdater
    from rlcore.learners.torch_private import WatchedStep as WatchedStep


def _lent(name: str) -> Any:
    """Return a name that a plugin lends while it is installed, as the compiled update."""
    from rlcore.plugins.known import lend

    return lend(__name__, name)


__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.learners.adam": "AdamState",
        "rlcore.learners.base": "Minimise Turn",
        "rlcore.learners.clipped_step": "ClippedStep chosen_losses",
        "rlcore.learners.gradient": "GradientLearner",
        "rlcore.learners.gradient_step": "GradientStep total_loss",
        "rlcore.learners.inputs": "inputs_of mean_of",
        "rlcore.learners.joint": "JointGradients rows_of",
        "rlcore.learners.modes": "in_training trained_layers",
        "rlcore.learners.noise": "holds",
        "rlcore.learners.optimizers": "OptimizerConfig parameters_of",
        "rlcore.learners.paces": "Due check_losses is_separable takes_turns",
        "rlcore.learners.schedules": "Scheduled ScheduledOfPart bind",
        "rlcore.learners.statistics": "refuse_several",
        "rlcore.learners.targets": "TargetConfig TargetUpdater",
        "rlcore.learners.torch_private": "WatchedStep",
    },
    _lent,
)
