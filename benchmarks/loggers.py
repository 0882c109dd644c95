"""What loggers cost a run: all four, and all four with dead servers, against none, in alternating pairs of runs.

The two runs of a pair alternate every two seconds: one is stopped with all its processes while the other goes on, and
only the time in which it goes on counts. The dead servers take connections and never answer. In the runs with living
back ends MLflow writes into a database file, whose tables are there as they are from the second run of a folder on, and
W&B into its offline files; nothing leaves the machine. The libraries of both are imported in processes beside training,
which on two cores costs a run about a second, whether it is short or long; so the run from a fifth of its frames on is
shown too.

    python benchmarks/loggers.py --pairs 10
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

from bench import HERE, RESULTS, machine
from slices import ENDED, READY, Program, in_turn

FRAMES = 1_200_000
EVERY = 10_000  # as in examples/ppo-cartpole.toml
SINGLE = ("csv", "tensorboard", "mlflow", "wandb")
KINDS = {"all": "csv, tensorboard, mlflow, wandb", "dead": "the same, with dead servers for mlflow and wandb"}


def sections(kind: str, port: int) -> list[dict[str, object]]:
    """Return the `[[logger]]` sections of a run."""
    if kind == "none":
        return []
    dead = f"http://127.0.0.1:{port}"
    mlflow = {"use": "mlflow", "tracking_uri": dead} if kind == "dead" else {"use": "mlflow"}
    wandb = {"use": "wandb", "base_url": dead} if kind == "dead" else {"use": "wandb", "mode": "offline"}
    return [s for s in ({"use": "csv"}, {"use": "tensorboard"}, mlflow, wandb) if kind in (*KINDS, s["use"])]


def prepare(file: str) -> None:
    """Make a database of MLflow with its tables."""
    code = f"from mlflow import MlflowClient; MlflowClient('sqlite:///{file}').search_experiments()"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def train(kind: str, frames: int, database: str) -> None:
    """Train in this process, as a `slices.Program`; it says `fifth` and its frames where a fifth of them is done."""
    os.environ.update(WANDB_API_KEY="0123456789" * 4, MLFLOW_TRACKING_URI="")
    sys.path.insert(0, str(HERE / "speed"))
    import tomli_w
    import torch
    from rlcore_config import config_for

    from rlcore import build, load_config

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, socket.create_server(("127.0.0.1", 0)) as s:
        values = config_for("cartpole", frames, 1, False, folder).resolved()
        shutil.copy(database, os.path.join(folder, "mlflow.db"))
        values.pop("versions")
        values |= {"logger": sections(kind, s.getsockname()[1]), "metrics": {"every": EVERY}}
        file = os.path.join(folder, "config.toml")
        with open(file, "w") as stream:
            stream.write(tomli_w.dumps({key: value for key, value in values.items() if value != []}))
        trainer = build(load_config(file)).trainer
        torch.set_num_threads(1)
        print(READY, flush=True)
        sys.stdin.readline()
        later = False
        for progress in trainer:
            if not later and progress.frames >= frames // 5:
                print(f"fifth {progress.frames}", flush=True)
                later = True
        print(ENDED, flush=True)


def measured(kinds: Sequence[str], frames: int, database: str, seconds: float) -> dict[str, tuple[float, float]]:
    """Return frames per second of runs in turn: of the whole, with its end, and from a fifth of the frames on."""
    command = [sys.executable, __file__, "--frames", str(frames), "--database", database, "--one"]
    programs = {kind: Program([*command, kind]) for kind in kinds}
    in_turn(list(programs.values()), seconds)
    return {kind: _speeds(program.marks, frames) for kind, program in programs.items()}


def _speeds(marks: Mapping[str, float], frames: int) -> tuple[float, float]:
    ((first, later),) = [(int(mark.split()[1]), at) for mark, at in marks.items() if mark.startswith("fifth")]
    return frames / marks[ENDED], (frames - first) / (marks[ENDED] - later)


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS, *SINGLE], default=list(KINDS))
    parser.add_argument("--trial", action="store_true", help="write no result")
    parser.add_argument(
        "--slice", type=float, default=2.0, help="seconds for which one run goes on, and the other stops"
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--database", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        train(args.one, args.frames, args.database)
        return
    with tempfile.TemporaryDirectory() as folder:
        prepare(database := os.path.join(folder, "mlflow.db"))
        lines = compare(args, database)
    what = (
        f"CartPole, {args.frames:,} frames, a row every {EVERY:,}; the runs of a pair in turns of {args.slice:g} s. "
        f"{machine()}."
    )
    text = f"# All loggers against none\n\n{what}\n\n" + "\n".join(lines) + "\n"
    if not args.trial:
        (RESULTS / "loggers.md").write_text(text)
    print(text)


def compare(args: argparse.Namespace, database: str) -> list[str]:
    """Return the lines of the table."""
    lines = [
        "| loggers | with, frames/s | without, frames/s | ratio of pairs | ratio after a fifth | pairs |",
        "|---" * 6 + "|",
    ]
    for kind in args.kinds:
        speeds: dict[str, list[tuple[float, float]]] = {kind: [], "none": []}
        for number in range(args.pairs):
            order = (kind, "none") if number % 2 == 0 else ("none", kind)
            for each, found in measured(order, args.frames, database, args.slice).items():
                speeds[each].append(found)
        cells = [f"{statistics.median(whole for whole, _ in speeds[each]):,.0f}" for each in (kind, "none")]
        for part in (0, 1):
            ratios = [a[part] / b[part] for a, b in zip(speeds[kind], speeds["none"], strict=True)]
            cells.append(f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
        lines.append(f"| {KINDS.get(kind, kind)} | {' | '.join(cells)} | {args.pairs} |")
        print(lines[-1], flush=True)
    return lines


if __name__ == "__main__":
    main()
