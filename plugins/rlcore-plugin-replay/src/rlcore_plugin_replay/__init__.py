"""Replay buffers for rlcore: uniform, prioritized, of sequences, with n-step returns, in memory or a mapped file."""

from rlcore import Component, hookimpl


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component("buffer", "replay", f"{__name__}.buffer:ReplayBuffer", summary="past transitions, sampled uniformly"),
        Component(
            "buffer",
            "prioritized",
            f"{__name__}.prioritized:PrioritizedReplayBuffer",
            summary="past transitions, sampled in proportion to their priorities",
        ),
        Component(
            "buffer",
            "hindsight",
            f"{__name__}.hindsight:HindsightReplayBuffer",
            summary="past transitions with goals that were reached later",
        ),
        Component(
            "buffer",
            "prioritized-hindsight",
            f"{__name__}.prioritized_hindsight:PrioritizedHindsightReplayBuffer",
            summary="past transitions with goals that were reached later, sampled by priorities",
        ),
        Component(
            "buffer",
            "sequences",
            f"{__name__}.sequences:SequenceReplayBuffer",
            summary="past sequences of steps, for policies with memory",
        ),
    ]
