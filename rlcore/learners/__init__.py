"""The gradient step of an optimizer, and the frame of an update; what a config learns with is lent by a plugin."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rlcore.lazy import lazy
from rlcore.plugins.known import lend

if TYPE_CHECKING:
    from rlcore_plugin_gradient.inputs import inputs_of as inputs_of
    from rlcore_plugin_gradient.inputs import mean_of as mean_of
    from rlcore_plugin_gradient.learner import GradientLearner as GradientLearner
    from rlcore_plugin_gradient.modes import in_training as in_training
    from rlcore_plugin_gradient.modes import trained_layers as trained_layers
    from rlcore_plugin_gradient.noise import holds as holds
    from rlcore_plugin_gradient.optimizers import OptimizerConfig as OptimizerConfig
    from rlcore_plugin_gradient.optimizers import parameters_of as parameters_of
    from rlcore_plugin_gradient.paces import check_losses as check_losses
    from rlcore_plugin_gradient.paces import is_separable as is_separable
    from rlcore_plugin_gradient.paces import takes_turns as takes_turns
    from rlcore_plugin_gradient.schedules import Scheduled as Scheduled
    from rlcore_plugin_gradient.schedules import ScheduledOfPart as ScheduledOfPart
    from rlcore_plugin_gradient.schedules import bind as bind
    from rlcore_plugin_gradient.statistics import refuse_several as refuse_several
    from rlcore_plugin_gradient.targets import TargetConfig as TargetConfig
    from rlcore_plugin_gradient.targets import TargetUpdater as TargetUpdater

    from rlcore.learners.adam import AdamState as AdamState
    from rlcore.learners.base import Due as Due
    from rlcore.learners.base import Minimise as Minimise
    from rlcore.learners.base import Turn as Turn
    from rlcore.learners.base import Updating as Updating
    from rlcore.learners.clipped_step import ClippedStep as ClippedStep
    from rlcore.learners.clipped_step import chosen_losses as chosen_losses
    from rlcore.learners.gradient_step import GradientStep as GradientStep
    from rlcore.learners.gradient_step import total_loss as total_loss
    from rlcore.learners.joint import JointGradients as JointGradients
    from rlcore.learners.joint import rows_of as rows_of
    from rlcore.learners.torch_private import WatchedStep as WatchedStep
    from rlcore.learners.torch_private import foreach_copy as foreach_copy
    from rlcore.learners.torch_private import foreach_lerp as foreach_lerp

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.learners.adam": "AdamState",
        "rlcore.learners.base": "Due Minimise Turn Updating",
        "rlcore.learners.clipped_step": "ClippedStep chosen_losses",
        "rlcore.learners.gradient_step": "GradientStep total_loss",
        "rlcore.learners.joint": "JointGradients rows_of",
        "rlcore.learners.torch_private": "WatchedStep foreach_copy foreach_lerp",
    },
    partial(lend, __name__),
)
