"""Makes the datasets that offline learning is compared on, from runs of rlcore, and says what is in them.

    python benchmarks/learning/make_data.py cartpole pendulum idp halfcheetah

cartpole     `cartpole-expert`, 10 episodes of a PPO run at its end; `cartpole-replay`, all that a DQN run sees
pendulum     `pendulum-medium-replay`, all that the first 10,000 frames of a SAC run see
idp          InvertedDoublePendulum: `idp-medium-replay`, all that 50,000 frames of SAC see; `idp-medium-expert`, about
             25,000 steps of the policy at 16,000 frames, and as many of that at the end
halfcheetah  the same of 100,000 frames, with the policy at 50,000

They lie in `benchmarks/data/`, each made once: delete a folder to make it again. `results/datasets.md` has their
returns and checksums. Runs are the same on the same machine, so that data made again there have the same checksum;
another processor may round otherwise.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from rlcore_plugin_datasets.dataset import Dataset

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "benchmarks" / "data"
RUNS = DATA / "runs"
TABLE = ROOT / "benchmarks" / "results" / "datasets.md"
RECORD = "hook.0.use='datasets:record'"  # in the place of the progress bar
HALF = 25_000  # steps of the medium policy, and of the expert
SAC = ("learner.compile=true", "evaluator.every=1_000_000", "run.threads=1", "metrics.every=5_000")


def rlcore(*arguments: str | Path) -> None:
    """Run a command of rlcore."""
    subprocess.run([sys.executable, "-m", "rlcore", *map(str, arguments)], check=True, cwd=ROOT)


def train(example: str, name: str, *changes: str, until: int | None = None) -> Path:
    """Train a run, or the rest of it, and return its folder."""
    flags = [part for change in (f"run.name='{name}'", f"run.folder='{RUNS}'", *changes) for part in ("--set", change)]
    stop = [] if until is None else ["--until", str(until)]
    resume = ["--resume"] if (RUNS / name).exists() else []
    rlcore("train", ROOT / "examples" / example, *flags, *stop, *resume, "--quiet")
    return RUNS / name


def record(run: Path, name: str, episodes: int, *flags: str) -> None:
    """Record episodes of the policy that a run has now."""
    if not (DATA / name).exists():
        rlcore("data", "record", run, "--episodes", str(episodes), "--out", DATA / name, *flags)


def keep(folder: Path, name: str) -> None:
    """Give what a run recorded its place."""
    shutil.copytree(folder / "recorded", DATA / name)


def make_cartpole() -> None:
    """Make the data of discrete actions."""
    teacher = train("ppo-cartpole.toml", "cartpole-ppo")
    record(teacher, "cartpole-expert", 10)
    keep(train("dqn-cartpole.toml", "cartpole-dqn", RECORD), "cartpole-replay")


def make_pendulum() -> None:
    """Make the data of a learner that is not done."""
    run = train("sac-pendulum.toml", "pendulum-sac", "run.total_frames=10_000", *SAC, RECORD)
    keep(run, "pendulum-medium-replay")


def record_steps(run: Path, name: str, seed: int) -> None:
    """Record about `HALF` steps of the policy that a run has now, by the length of its latest episodes."""
    latest = list(Dataset(run / "recorded").episodes())[-10:]
    steps = statistics.fmean(len(episode) for episode in latest)
    record(run, name, max(1, round(HALF / steps)), "--sample", "--seed", str(seed))


def make_control(name: str, env: str, frames: int, medium: int) -> None:
    """Make the data of a task of MuJoCo."""
    changes = (f"run.total_frames={frames}", f"env.id='{env}'", f"checkpoint.every={medium}", *SAC, RECORD)
    if not (DATA / f"{name}-medium").exists():
        record_steps(train("sac-halfcheetah.toml", f"{name}-sac", *changes, until=medium), f"{name}-medium", 0)
    run = train("sac-halfcheetah.toml", f"{name}-sac", *changes)
    record_steps(run, f"{name}-expert", 1000)
    halves = [DATA / f"{name}-medium", DATA / f"{name}-expert"]
    rlcore("data", "merge", *halves, "--out", DATA / f"{name}-medium-expert")
    keep(run, f"{name}-medium-replay")


MAKERS = {
    "cartpole": make_cartpole,
    "pendulum": make_pendulum,
    "idp": lambda: make_control("idp", "InvertedDoublePendulum-v5", 50_000, 16_000),
    "halfcheetah": lambda: make_control("halfcheetah", "HalfCheetah-v5", 100_000, 50_000),
}
LAST = {"cartpole": "cartpole-replay", "pendulum": "pendulum-medium-replay"}


def row(folder: Path) -> str:
    """Return the line of a dataset."""
    dataset = Dataset(folder)
    returns = [episode.return_ for episode in dataset.episodes()]
    best = sorted(returns)[-max(1, len(returns) // 10) :]
    figures = (f"{statistics.fmean(returns):,.1f}", f"{statistics.fmean(best):,.1f}", f"{max(returns):,.1f}")
    counts = (f"{dataset.metadata.episodes:,}", f"{dataset.metadata.steps:,}")
    return f"| {' | '.join((folder.name, *counts, *figures, dataset.metadata.file['xxh3']))} |"


def main() -> None:
    """Make them, and write the rows of all that are there into the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=list(MAKERS))
    for name in parser.parse_args().names:
        if not (DATA / LAST.get(name, f"{name}-medium-replay")).exists():
            MAKERS[name]()
    titles = ("dataset", "episodes", "steps", "mean return", "of the best tenth", "best", "checksum")
    head = f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|"
    # those that were made elsewhere keep theirs
    rows = {line.split(" | ")[0]: line for line in TABLE.read_text().splitlines()[4:]}
    made = [row(folder) for folder in DATA.iterdir() if (folder / "metadata.json").exists()]
    rows |= {line.split(" | ")[0]: line for line in made}
    lines = [rows[name] for name in sorted(rows)]
    text = "\n".join(["# Datasets", "", head, *lines])
    TABLE.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
