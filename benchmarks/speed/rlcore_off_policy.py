"""Speed of rlcore's off-policy algorithms from a config: both loggers, checkpoints and the progress bar are on.

The configs are the examples with the sizes of the workload, so that the work is that of the bare loop; only evaluation
is off. Hooks, counting, metrics and logging all fall into the timed iterations.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from off_policy import CHEETAH, EPSILON_FRAMES, OffPolicy, Stopwatch, off_policy_parser, start
from pong import SKIP

from rlcore import build, load_config

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = {
    "dqn-cartpole": "dqn-cartpole.toml",
    "sac-halfcheetah": "sac-halfcheetah.toml",
    "td3-halfcheetah": "td3-halfcheetah.toml",
    "redq-halfcheetah": "redq-pendulum.toml",
    "dqn-pong": "dqn-pong.toml",
}
DQN = [
    "model.epsilon_end=0.05",
    "loss.double=false",
    "loss.error='l2'",
    "loss.target_interval=50",
    "metrics.every=5_000",
]


def config_for(workload: str, work: OffPolicy, threads: int, seed: int, compiled: bool, folder: str) -> Any:
    """Return the config of a workload; it is longer than what is timed, so that schedules are those of a whole run."""
    total, skip = 2 * EPSILON_FRAMES, frame_skip(workload)
    changes = [
        f"run.total_frames={total * skip}",
        f"run.seed={seed}",
        f"run.folder='{folder}'",
        f"run.threads={threads}",
        f"learner.compile={'true' if compiled else 'false'}",
        f"model.hidden={list(work.hidden)}",
        f"loss.gamma={work.gamma}",
        f"collector.frames_per_batch={work.frames_per_update * skip}",
        f"buffer.capacity={work.capacity}",
        f"buffer.minibatch_size={work.minibatch}",
        f"buffer.warmup_frames={work.warmup * skip}",
        "buffer.updates_per_batch=1",
        "evaluator.every=1_000_000_000",
        "evaluator.at_start=false",
    ]
    if workload == "dqn-cartpole":
        changes += [*DQN, f"optimizer.0.lr={work.critic_lr}", f"model.epsilon_fraction={EPSILON_FRAMES / total}"]
        # the bare loop clips nothing; the limit of the example has no value that means none
        raw = without(EXAMPLES / FILES[workload], "learner", "max_grad_norm")
        return load_config(raw, changes)
    if workload == "dqn-pong":
        epsilon = f"model.epsilon_fraction={EPSILON_FRAMES / total}"
        changes += ["buffer.storage='memory'", f"optimizer.0.lr={work.critic_lr}", epsilon]
        return load_config(EXAMPLES / FILES[workload], changes)
    changes += [f"env.id='{CHEETAH}'", f"model.random_frames={work.warmup}", "metrics.every=1_000"]
    return load_config(EXAMPLES / FILES[workload], changes)


def frame_skip(workload: str) -> int:
    """Return the frames of a run that are one frame here."""
    return SKIP if workload == "dqn-pong" else 1


def without(path: Path, section: str, key: str) -> dict[str, Any]:
    """Return what a config file holds, less one key."""
    import tomllib

    raw = tomllib.loads(path.read_text())
    del raw[section][key]
    return raw


def main() -> None:
    """Train and print the JSON line."""
    args = off_policy_parser(__doc__).parse_args()
    work = start(args)
    watch, last = Stopwatch(work), work.begin + (args.frames or work.frames)
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        terminal, sys.stderr = sys.stderr, nowhere
        trainer = build(config_for(args.workload, work, args.threads, args.seed, args.compile, folder)).trainer
        for progress in trainer:
            frames = progress.frames // frame_skip(args.workload)
            watch.at(frames)
            if frames >= last:
                break
        sys.stderr = terminal
    watch.report("rlcore", args)


if __name__ == "__main__":
    main()
