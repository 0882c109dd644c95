"""Speed of rlcore's PPO on Pong as a user runs `examples/ppo-pong.toml`; only evaluation is off."""

from __future__ import annotations

from common import prepare, whole_batches
from pong import PONG, SKIP, pong_parser
from rlcore_config import EXAMPLES, NO_EVALUATION
from rlcore_ppo import timed

from rlcore import load_config


def main() -> None:
    """Train and print the JSON line."""
    parser = pong_parser(__doc__)
    parser.add_argument("--compile", action="store_true", help="[learner] compile = true")
    parser.add_argument("--native", action="store_true", help="ALE's vector env, instead of games stepped one by one")
    args = parser.parse_args()
    prepare(args)
    frames = whole_batches(PONG, args.frames)
    changes = [
        f"run.total_frames={SKIP * frames}",
        f"run.seed={args.seed}",
        f"run.threads={args.threads}",
        f"learner.compile={'true' if args.compile else 'false'}",
        f"env.vectorization='{'native' if args.native else 'serial'}'",
        *NO_EVALUATION,
    ]
    name = ", ".join(["rlcore", *(["compiled"] * args.compile), *(["native"] * args.native)])
    timed(
        name, args, PONG, lambda folder: load_config(EXAMPLES / "ppo-pong.toml", [*changes, f"run.folder='{folder}'"])
    )


if __name__ == "__main__":
    main()
