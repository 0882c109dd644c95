"""What a run from a config steps in this process: collector, rollout buffers, evaluation."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component("collector", "local", f"{__name__}.local:LocalCollector", summary="steps the envs in this process"),
        Component(
            "collector", "none", f"{__name__}.nothing:NoCollector", summary="collects nothing: the buffer has data"
        ),
        Component("buffer", "rollout", f"{__name__}.rollout:RolloutBuffer", summary="epochs over the latest batch"),
        Component(
            "buffer",
            "rollout-sequences",
            f"{__name__}.sequences:RolloutSequences",
            summary="the same, in stretches of time for policies with a state",
        ),
        Component("evaluator", "episodes", f"{__name__}.evaluator:EpisodeEvaluator", summary="episodes on fixed seeds"),
    ]
