"""The components that rlcore itself provides, through the same door as everyone's, under the plugin name `core`."""

from __future__ import annotations

from typing import Final

from rlcore.hooks.specs import hookimpl
from rlcore.plugins.component import Component

# the plugin that these components are of
CORE: Final = "core"
_HOOKS: Final = "rlcore.core_hooks"
_OPTIMIZERS: Final = "rlcore.learners.optimizers"
# those of torch that work as they are, by their names there
_OF_TORCH: Final = ("Adadelta", "Adafactor", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop")


@hookimpl
def provide_components() -> list[Component]:
    """Return the built-in components."""
    return [
        Component(
            "collector", "local", "rlcore.collectors.local:LocalCollector", summary="steps the envs in this process"
        ),
        Component(
            "collector",
            "none",
            "rlcore.collectors.nothing:NoCollector",
            summary="collects nothing: the buffer has data",
        ),
        Component("buffer", "rollout", "rlcore.buffers.rollout:RolloutBuffer", summary="epochs over the latest batch"),
        Component(
            "buffer",
            "rollout-sequences",
            "rlcore.buffers.sequences:RolloutSequences",
            summary="the same, in stretches of time for policies with a state",
        ),
        Component(
            "learner", "gradient", "rlcore.learners.gradient:GradientLearner", summary="gradient steps in this process"
        ),
        Component("evaluator", "episodes", "rlcore.envs.evaluator:EpisodeEvaluator", summary="episodes on fixed seeds"),
        Component("optimizer", "adam", f"{_OPTIMIZERS}:adam", f"{_OPTIMIZERS}:AdamConfig", "Adam, fused"),
        Component("optimizer", "adamw", f"{_OPTIMIZERS}:adamw", f"{_OPTIMIZERS}:AdamConfig", "AdamW, fused"),
        Component("optimizer", "sgd", f"{_OPTIMIZERS}:sgd", f"{_OPTIMIZERS}:SGDConfig", "gradient descent"),
        *[
            Component(
                "optimizer", name.lower(), f"rlcore.learners.torch_optimizers:{name}", summary=f"torch.optim.{name}"
            )
            for name in _OF_TORCH
        ],
        Component("scheduler", "linear", "rlcore.learners.schedules:Linear", summary="linear in frames"),
        Component("scheduler", "cosine", "rlcore.learners.schedules:Cosine", summary="half a cosine in frames"),
        Component(
            "hook", "progress-bar", f"{_HOOKS}.progress_bar:ProgressBar", summary="a bar on the terminal", shows=True
        ),
        Component(
            "hook", "console-table", f"{_HOOKS}.console_table:ConsoleTable", summary="a table of metrics", shows=True
        ),
        Component("hook", "reward-clip", f"{_HOOKS}.reward_clip:RewardClip", summary="clips rewards of a batch"),
    ]
