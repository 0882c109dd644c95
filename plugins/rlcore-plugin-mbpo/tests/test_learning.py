"""The example learns, in far fewer frames than SAC takes."""

from pathlib import Path

import pytest

import rlcore

EXAMPLE = Path(__file__).parents[3] / "examples" / "mbpo-inverted-pendulum.toml"


@pytest.mark.slow
def test_the_example_balances_the_pole_for_hundreds_of_steps(tmp_path):
    """Random actions last for five; the limit is a thousand."""
    keys = ["run.total_frames=2_000", "evaluator.every=500", "evaluator.episodes=3", f"run.folder='{tmp_path}'"]
    trainer = rlcore.build(rlcore.load_config(EXAMPLE, keys)).trainer
    for _ in trainer:
        # nothing is best before it has trained
        if trainer.best_evaluation and trainer.best_evaluation.mean_return >= 300:
            break
    assert trainer.best_evaluation.mean_return >= 300, "it did at frame 1,500"
