"""The configs of the workloads: the examples, with evaluation off, as the peers are timed without it too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlcore import load_config

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

NO_EVALUATION = ["evaluator.every=1_000_000_000", "evaluator.at_start=false", "evaluator.episodes=1"]

FILES = {"idp": "ppo-idp.toml", "cartpole": "ppo-cartpole.toml", "cartpole64": "ppo-cartpole.toml"}
CHANGES = {
    "idp": [],
    "cartpole": [],
    "cartpole64": ["env.num_envs=64", "collector.frames_per_batch=8192", "buffer.minibatch_size=2048"],
}


def config_for(workload: str, frames: int, seed: int, compiled: bool, folder: str = "runs") -> Any:
    """Return the config of a workload."""
    changes = [
        *CHANGES[workload],
        f"run.total_frames={frames}",
        f"run.seed={seed}",
        f"run.folder='{folder}'",
        f"learner.compile={'true' if compiled else 'false'}",
        *NO_EVALUATION,
    ]
    return load_config(EXAMPLES / FILES[workload], changes)
