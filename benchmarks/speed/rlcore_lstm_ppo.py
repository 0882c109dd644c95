"""Speed of rlcore's PPO with an LSTM, from the example with the sizes of the workload: loggers and checkpoints on."""

from __future__ import annotations

from common import peer_parser, prepare, whole_batches
from lstm_ppo import SIZE, STRETCH, WORKLOADS
from rlcore_config import EXAMPLES, NO_EVALUATION
from rlcore_ppo import timed

from rlcore import load_config


def main() -> None:
    """Train and print the JSON line."""
    parser = peer_parser(__doc__, tuple(WORKLOADS))
    parser.add_argument("--compile", action="store_true", help="[learner] compile = true")
    args = parser.parse_args()
    prepare(args)
    workload = WORKLOADS[args.workload]
    changes = [
        f"run.total_frames={whole_batches(workload, args.frames)}",
        f"run.seed={args.seed}",
        f"env.num_envs={workload.envs}",
        f"model.size={SIZE}",
        "model.encoder_hidden=[]",  # the peers have no layers before the LSTM
        f"collector.frames_per_batch={workload.batch}",
        f"buffer.minibatch_size={workload.minibatch}",
        f"buffer.sequence_length={STRETCH}",
        f"buffer.epochs={workload.epochs}",
        f"learner.compile={'true' if args.compile else 'false'}",
        *NO_EVALUATION,
    ]
    config = EXAMPLES / "ppo-cartpole-lstm.toml"
    name = "rlcore, compiled" if args.compile else "rlcore"
    timed(name, args, workload, lambda folder: load_config(config, [*changes, f"run.folder='{folder}'"]))


if __name__ == "__main__":
    main()
