"""The components that rlcore itself provides, through the same door as everyone's, under the plugin name `core`."""

from __future__ import annotations

from rlcore.components import Component
from rlcore.hookspecs import hookimpl

_OPTIMIZERS = "rlcore.optimizers"


@hookimpl
def provide_components() -> list[Component]:
    """Return the built-in components."""
    return [
        Component("collector", "local", "rlcore.collect:LocalCollector", summary="steps the envs in this process"),
        Component("buffer", "rollout", "rlcore.buffer:RolloutBuffer", summary="epochs over the newest batch"),
        Component("learner", "gradient", "rlcore.learner:GradientLearner", summary="gradient steps in this process"),
        Component("evaluator", "episodes", "rlcore.evaluate:EpisodeEvaluator", summary="episodes on fixed seeds"),
        Component("optimizer", "adam", f"{_OPTIMIZERS}:adam", f"{_OPTIMIZERS}:AdamConfig", "Adam, fused"),
        Component("optimizer", "adamw", f"{_OPTIMIZERS}:adamw", f"{_OPTIMIZERS}:AdamConfig", "AdamW, fused"),
        Component("optimizer", "sgd", f"{_OPTIMIZERS}:sgd", f"{_OPTIMIZERS}:SGDConfig", "gradient descent"),
        Component("scheduler", "linear", "rlcore.schedules:Linear", summary="linear in frames"),
        Component("scheduler", "cosine", "rlcore.schedules:Cosine", summary="half a cosine in frames"),
        Component("hook", "progress-bar", "rlcore.stock.progress_bar:ProgressBar", summary="a bar on the terminal"),
        Component("hook", "reward-clip", "rlcore.stock.reward_clip:RewardClip", summary="clips rewards of a batch"),
    ]
