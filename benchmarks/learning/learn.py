"""Learning results over seeds: rlcore from its example configs, and peers beside it.

idp           50,000 frames of ppo-idp.toml, then 20 deterministic episodes on fixed seeds; peers: TorchRL, SB3
{impala,appo}-cartpole  500,000 and 400,000 frames at a lag of up to 4, mean return of the last 100 training episodes
cartpole      500,000 frames of ppo-cartpole.toml, mean return of the last 100 training episodes; peers: CleanRL, SB3
dqn-cartpole  50,000 frames of dqn-cartpole.toml, mean return of the last 100 training episodes; peer: SB3
qr-dqn-acrobot  100,000 frames of qr-dqn-acrobot.toml, mean return of the last 100 training episodes; peer:
              sb3-contrib
{sac,td3,ddpg,crossq}-pendulum  20,000 frames, then 100 deterministic episodes; peers: SB3, sb3-contrib
pqn-{cartpole,acrobot}  500,000 frames of pqn-cartpole.toml, mean return of the last 100 training episodes
pqn-{lstm,blind}-cartpole  500,000 frames of CartPole without velocities, with a memory and without one, the same mean
ppo-masked    300,000 frames where 60 of 80 actions are illegal, mean return of the last 100 training episodes; peer:
              MaskablePPO of sb3-contrib
r2d2-stateless  1,000,000 frames of r2d2-cartpole.toml, mean return of the last 100 training episodes
dqn-stateless  the same envs without memory, mean return of the last 100 training episodes
{sac,td3}-halfcheetah  100,000 frames, then 10 deterministic episodes; peer: SB3
sac-{cartpole-swingup,cup-catch}  100,000 frames of dm_control, two of each action, then 10 deterministic episodes;
              peer: SB3. Both Pythons need what `rlcore[dm-control]` brings
mbpo-inverted-pendulum  10,000 frames, 10 updates each, then 10 deterministic episodes
sac-inverted-pendulum  30,000 frames of the same without a model of the env, one update each
discrete-sac-cartpole  100,000 frames, mean return of the last 100 training episodes; peer: TorchRL
{lstm,blind}-cartpole  2,000,000 frames of CartPole without velocities, with a memory and without one, mean return of
              the last 100 training episodes; peer of the first: sb3-contrib
{dqn,c51}-{cartpole,acrobot}-500k  500,000 frames with CleanRL's settings, mean return of the last 100 training episodes
{ppo,dqn}-minatar-{breakout,space-invaders}  1,000,000 frames, mean return of the last 100 training episodes; peer: SB3
pqn-minatar-breakout  the same of PQN, with the game as tensors

{bc,bc10,td3-bc,cql,iql}-{idp,halfcheetah}-medium-{replay,expert}  50,000 updates from the datasets of `make_data.py`,
              then 20 deterministic episodes; `bc10` clones the best tenth of the episodes, and `cql`, of which an
              update takes ten times as long, has 10,000; of `iql`, and of the clones of `halfcheetah-medium-expert`,
              the mean of the last five evaluations counts, 5,000 updates apart; peer: d3rlpy
iql-in-turn-{idp,halfcheetah}-medium-{replay,expert}  the same of IQL whose actor sees the value after its step
bc-cartpole-expert, discrete-cql-cartpole-replay  the examples on those datasets, then 100 episodes
{iql,mopo}-pendulum-medium-replay  20,000 updates from the same dataset, then 20 episodes
iql-online-halfcheetah  50,000 updates of IQL from `halfcheetah-medium-replay`, then 20,000 frames of its own; `lowest`
              is the least of its evaluations, one every 2,000 frames
sac-halfcheetah-20k  20,000 frames of SAC without data, then 10 deterministic episodes
mbpo-cartpole  5,000 frames of CartPole with continuous forces, mean return of the last 10 training episodes; peer:
              mbrl-lib

A finished seed lies in results/rows/learning-TASK/ and is not run again; delete its file to repeat it. The table has
every seed that lies there. One that learnt from a dataset notes its checksum: where the dataset is another one now, the
seed is run again, and is left out of the table until then.

    python benchmarks/learning/learn.py idp --seeds 1 2 3 4 5 --peers-python .venv-peers/bin/python
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}
ACROBOT = "env.id='Acrobot-v1'"
INVADERS = "env.id='MinAtar/SpaceInvaders-v1'"
NO_EVALUATION = "evaluator.every=1_000_000"
ONE_EVALUATION = "evaluator.every=100_000"
TEN_EPISODES = (ONE_EVALUATION, "evaluator.episodes=10")
COMPILED_100K = ("run.total_frames=100_000", "learner.compile=true")  # compiled, to take less time
CUP = "env.id='dm_control/ball_in_cup-catch-v0'"
# the settings of TD3 in Stable-Baselines3's zoo
ZOO_TD3 = (
    "model.hidden=[400, 300]",
    "model.random_frames=10_000",
    "buffer.warmup_frames=10_000",
    "optimizer.critics.lr=1e-3",
    "optimizer.actor.lr=1e-3",
)
# what is trained on a dataset, and in which env it is evaluated
DATASETS = {
    f"{task}-medium-{kind}": env
    for task, env in {"idp": "InvertedDoublePendulum-v5", "halfcheetah": "HalfCheetah-v5"}.items()
    for kind in ("replay", "expert")
}
CLONE = (
    "model.use='sac:actor-critic'",
    "model.actor='deterministic'",
    "model.hidden=[256, 256]",
    "buffer.minibatch_size=256",
    "optimizer.0.lr=3e-4",
)
OFFLINE = {
    "bc": ("examples/bc-cartpole.toml", CLONE),
    "bc10": ("examples/bc-cartpole.toml", (*CLONE, "buffer.best=0.1")),
    "td3-bc": ("examples/td3-bc-pendulum.toml", ()),
    "cql": ("examples/cql-pendulum.toml", ()),
    "iql": ("examples/iql-pendulum.toml", ()),
    "iql-in-turn": ("benchmarks/learning/iql-in-turn.toml", ()),
}
# from one evaluation to the next their returns change by more than from seed to seed: the result is the mean of the
# last ones
SWINGING = [f"{algorithm}-{data}" for algorithm in ("iql", "iql-in-turn") for data in DATASETS]
SWINGING += ["bc-halfcheetah-medium-expert", "bc10-halfcheetah-medium-expert"]
LAST, EVERY = 5, 5_000
UPDATES = dict.fromkeys(OFFLINE, 50_000) | {"cql": 10_000}
ONLINE = "iql-online-halfcheetah"
OF_D3RLPY = ("bc", "bc10", "td3-bc", "cql", "iql")


def on_data(name: str, updates: int, episodes: int, every: int | None = None) -> list[str]:
    """Return the changes that put a dataset in the place of the example's, and evaluate at the end, or now and then."""
    length = [f"run.total_updates={updates}", f"evaluator.every={every or updates}", f"checkpoint.every={updates}"]
    return [f"buffer.path='{ROOT}/benchmarks/data/{name}'", *length, f"evaluator.episodes={episodes}"]


# config and changes of it by task
TASKS: dict[str, tuple[str, list[str]]] = {
    "idp": ("examples/ppo-idp.toml", ["evaluator.episodes=20"]),
    "cartpole": ("examples/ppo-cartpole.toml", []),
    "impala-cartpole": ("examples/impala-cartpole.toml", [NO_EVALUATION]),
    "appo-cartpole": ("examples/appo-cartpole.toml", [NO_EVALUATION]),
    "ppo-masked": ("benchmarks/learning/ppo-masked.toml", []),
    "dqn-cartpole": ("examples/dqn-cartpole.toml", []),
    "dqn-cartpole-500k": ("benchmarks/learning/dqn-cleanrl.toml", []),
    "dqn-acrobot-500k": ("benchmarks/learning/dqn-cleanrl.toml", [ACROBOT]),
    "c51-cartpole-500k": ("examples/c51-cartpole.toml", [NO_EVALUATION]),
    "qr-dqn-acrobot": ("examples/qr-dqn-acrobot.toml", [NO_EVALUATION]),
    "pqn-cartpole": ("examples/pqn-cartpole.toml", [NO_EVALUATION]),
    "pqn-acrobot": ("examples/pqn-cartpole.toml", [ACROBOT, NO_EVALUATION]),
    "pqn-lstm-cartpole": ("examples/pqn-cartpole-lstm.toml", [NO_EVALUATION]),
    "pqn-blind-cartpole": ("benchmarks/learning/pqn-cartpole-blind.toml", [NO_EVALUATION]),
    "r2d2-stateless": ("examples/r2d2-cartpole.toml", ["run.total_frames=1_000_000", NO_EVALUATION]),
    "dqn-stateless": ("benchmarks/learning/dqn-stateless.toml", []),
    "sac-pendulum": ("examples/sac-pendulum.toml", ["evaluator.episodes=100"]),
    "td3-pendulum": ("examples/td3-pendulum.toml", ["evaluator.episodes=100"]),
    "ddpg-pendulum": ("examples/ddpg-pendulum.toml", ["evaluator.episodes=100"]),
    "crossq-pendulum": ("examples/crossq-pendulum.toml", ["evaluator.episodes=100"]),
    "sac-halfcheetah": ("examples/sac-halfcheetah.toml", [*COMPILED_100K, ONE_EVALUATION]),
    "sac-halfcheetah-20k": (
        "examples/sac-halfcheetah.toml",
        ["run.total_frames=20_000", "learner.compile=true", ONE_EVALUATION],
    ),
    "td3-halfcheetah": ("examples/td3-halfcheetah.toml", [*COMPILED_100K, ONE_EVALUATION, *ZOO_TD3]),
    "sac-cartpole-swingup": ("examples/sac-dm-control.toml", [*COMPILED_100K, *TEN_EPISODES]),
    "sac-cup-catch": ("examples/sac-dm-control.toml", [*COMPILED_100K, *TEN_EPISODES, CUP]),
    "mbpo-inverted-pendulum": ("examples/mbpo-inverted-pendulum.toml", ["evaluator.episodes=10"]),
    "sac-inverted-pendulum": (
        "examples/mbpo-inverted-pendulum.toml",
        ["evaluator.episodes=10", "buffer.real_share=1.0", "buffer.updates_per_batch=1", "run.total_frames=30_000"],
    ),
    "discrete-sac-cartpole": ("examples/discrete-sac-cartpole.toml", [NO_EVALUATION]),
    "c51-acrobot-500k": ("examples/c51-cartpole.toml", [NO_EVALUATION, ACROBOT]),
    "lstm-cartpole": ("examples/ppo-cartpole-lstm.toml", ["run.total_frames=2_000_000", NO_EVALUATION]),
    "blind-cartpole": ("benchmarks/learning/ppo-cartpole-blind.toml", [NO_EVALUATION]),
    "ppo-minatar-breakout": ("examples/ppo-minatar-breakout.toml", [NO_EVALUATION]),
    "ppo-minatar-space-invaders": ("examples/ppo-minatar-breakout.toml", [NO_EVALUATION, INVADERS]),
    "dqn-minatar-breakout": ("examples/dqn-minatar-breakout.toml", [NO_EVALUATION]),
    "dqn-minatar-space-invaders": ("examples/dqn-minatar-breakout.toml", [NO_EVALUATION, INVADERS]),
    "pqn-minatar-breakout": ("examples/pqn-minatar-breakout.toml", ["run.total_frames=1_000_000", NO_EVALUATION]),
}
TASKS |= {
    f"{algorithm}-{data}": (
        config,
        [
            *(*changes, f"env.id='{env}'", "learner.compile=true"),
            *on_data(data, UPDATES[algorithm], 20, EVERY if f"{algorithm}-{data}" in SWINGING else None),
        ],
    )
    for algorithm, (config, changes) in OFFLINE.items()
    for data, env in DATASETS.items()
}
TASKS |= {
    "bc-cartpole-expert": ("examples/bc-cartpole.toml", on_data("cartpole-expert", 2_000, 100)),
    "discrete-cql-cartpole-replay": ("examples/discrete-cql-cartpole.toml", on_data("cartpole-replay", 10_000, 100)),
    "iql-pendulum-medium-replay": ("examples/iql-pendulum.toml", on_data("pendulum-medium-replay", 20_000, 20)),
    "mopo-pendulum-medium-replay": ("examples/mopo-pendulum.toml", on_data("pendulum-medium-replay", 20_000, 20)),
    ONLINE: (
        "examples/iql-online-pendulum.toml",
        [
            *("env.id='HalfCheetah-v5'", "learner.compile=true", "run.total_frames=20_000", "evaluator.every=2_000"),
            *(f"buffer.path='{ROOT}/benchmarks/data/halfcheetah-medium-replay'", "buffer.offline_updates=50_000"),
            *("buffer.capacity=20_000", "checkpoint.every=20_000"),
        ],
    ),
    "mbpo-cartpole": ("benchmarks/learning/mbpo-cartpole.toml", []),
}
ON_DATA = tuple(task for task, (_, changes) in TASKS.items() if any("buffer.path" in change for change in changes))
MINATAR = tuple(task for task in TASKS if task.startswith(("ppo-minatar-", "dqn-minatar-")))
PENDULUMS = ("sac-pendulum", "td3-pendulum", "ddpg-pendulum", "crossq-pendulum")
BESIDE_SB3 = (*PENDULUMS, "sac-halfcheetah", "td3-halfcheetah", "sac-cartpole-swingup", "sac-cup-catch")
# tasks that are judged by their last evaluation, and not by the episodes of training
EVALUATED = ("idp", *BESIDE_SB3, "mbpo-inverted-pendulum", "sac-inverted-pendulum", "sac-halfcheetah-20k", *ON_DATA)
PEERS: dict[str, tuple[str, ...]] = {"idp": ("sb3", "torchrl"), "cartpole": ("sb3", "cleanrl")}
PEERS |= dict.fromkeys(("dqn-cartpole", "qr-dqn-acrobot", "lstm-cartpole", *BESIDE_SB3, *MINATAR), ("sb3",))
PEERS |= {"ppo-masked": ("sb3-contrib",), "discrete-sac-cartpole": ("torchrl",), "mbpo-cartpole": ("mbrl-lib",)}
PEERS |= {f"{algorithm}-{data}": ("d3rlpy",) for algorithm in OF_D3RLPY for data in DATASETS}
# the script of a peer and its arguments by task; `{peer}` is the peer's name
SCRIPTS: dict[str, list[str]] = {
    "idp": ["learning/peer_idp.py", "--peer", "{peer}", "--frames", "50000"],
    # the scripts that time these record the returns of training too
    "cartpole": ["speed/{peer}_ppo.py", "--workload", "cartpole", "--frames", "500000"],
    "lstm-cartpole": ["speed/{peer}_lstm_ppo.py", "--workload", "lstm-cartpole", "--frames", "2000000"],
    "discrete-sac-cartpole": ["learning/torchrl_discrete_sac.py"],
    "mbpo-cartpole": ["speed/mbrl_mbpo.py", "--exploration", "1000", "--frames", "4000"],
}
SCRIPTS |= {
    task: ["learning/sb3_tasks.py", task] for task in ("dqn-cartpole", "qr-dqn-acrobot", "ppo-masked", *BESIDE_SB3)
}
SCRIPTS |= {task: ["learning/sb3_minatar.py", task] for task in MINATAR}
SCRIPTS |= {
    f"{algorithm}-{data}": [
        *("learning/d3rlpy_tasks.py", algorithm, data, env, "--updates", str(UPDATES[algorithm])),
        *(["--evaluations", str(LAST), "--every", str(EVERY)] if f"{algorithm}-{data}" in SWINGING else []),
    ]
    for algorithm in OF_D3RLPY
    for data, env in DATASETS.items()
}


def train_here(task: str, seed: int, changes: list[str]) -> dict[str, Any]:
    """Train one seed in this process and return its result."""
    from rlcore import build, hookimpl, load_config

    class Returns:
        def __init__(self) -> None:
            self.seen: list[float] = []
            self.evaluated: list[float] = []

        @hookimpl
        def evaluation(self, result: Any) -> None:
            self.evaluated.append(result.mean_return)

        @hookimpl
        def episode_end(self, episode: Any) -> None:
            self.seen.append(episode.return_)

    hook = Returns()
    config, settings = TASKS[task]
    with tempfile.TemporaryDirectory() as folder:
        overrides = [f"run.seed={seed}", f"run.folder='{folder}'", *settings, *changes]
        trainer = build(load_config(ROOT / config, overrides), hooks=[hook]).trainer
        trainer.train()
    result = {"peer": "rlcore", "task": task, "seed": seed, "train_s": round(trainer.seconds_trained, 1)}
    if task not in EVALUATED:
        return result | {"mean": statistics.fmean(hook.seen[-(10 if task == "mbpo-cartpole" else 100) :])}
    if task in SWINGING:
        return result | {"mean": statistics.fmean(hook.evaluated[-LAST:]), "evaluations": hook.evaluated[-LAST:]}
    evaluation = trainer.last_evaluation
    assert evaluation is not None
    found = {"mean": evaluation.mean_return, "std": statistics.pstdev(evaluation.returns)}
    # the first is of the policy before it learnt
    lowest = {"lowest": min(hook.evaluated[1:])} if task == ONLINE else {}
    return result | found | {"length": evaluation.mean_length} | lowest


def in_process(task: str, seed: int, changes: list[str]) -> dict[str, Any]:
    """Do the same in a process of its own."""
    flags = [part for change in changes for part in ("--set", change)]
    return last_line([sys.executable, __file__, task, "--one", str(seed), *flags])


def in_ranks(count: int, task: str, seed: int, changes: list[str]) -> dict[str, Any]:
    """Train one seed in several processes, and return the mean return of the evaluation at its end."""
    config, settings = TASKS[task]
    with tempfile.TemporaryDirectory() as folder:
        named = [f"run.seed={seed}", f"run.folder='{folder}'", "run.name='run'", f"ranks.count={count}"]
        command = [str(Path(sys.executable).with_name("rlcore")), "train", str(ROOT / config), "--quiet"]
        output_of([*command, *(part for change in (*named, *settings, *changes) for part in ("--set", change))])
        with (Path(folder) / "run" / "evaluations.csv").open() as stream:
            rows = list(csv.DictReader(stream))
    last = [float(row["return"]) for row in rows if row["frames"] == rows[-1]["frames"]]
    result = {"peer": f"rlcore, {count} ranks", "task": task, "seed": seed, "mean": statistics.fmean(last)}
    print(json.dumps(result), flush=True)
    return result


def peer(python: str, task: str, name: str, seed: int) -> dict[str, Any]:
    """Run a peer."""
    script, *arguments = (part.format(peer=name) for part in SCRIPTS[task])
    result = last_line([python, str(ROOT / "benchmarks" / script), *arguments, "--seed", str(seed)])
    if "mean" in result:
        return result
    return {"peer": name, "task": task, "seed": seed, "mean": result["return_last_100"]}


def output_of(command: list[str]) -> str:
    """Run a command and return what it prints."""
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def last_line(command: list[str]) -> dict[str, Any]:
    """Run a command and return the JSON of its last line."""
    result = json.loads(output_of(command).strip().splitlines()[-1])
    print(json.dumps(result), flush=True)
    return dict(result)


def checksum_of_data(task: str) -> str | None:
    """Return the checksum of the dataset that a task learns from; None where there is none, or none yet."""
    places = [change for change in TASKS[task][1] if change.startswith("buffer.path=")]
    if not places:
        return None
    folder = Path(places[0].partition("=")[2].strip("'"))
    if not folder.exists():
        return None
    from rlcore_plugin_datasets.dataset import Dataset

    return str(Dataset(folder).metadata.file["xxh3"])


class Kept:
    """The results of a task, each in a file as soon as it is there; what a file holds is not run again."""

    def __init__(self, task: str, keep: bool) -> None:
        self._folder = RESULTS / "rows" / f"learning-{task}" if keep else None
        self._checksum = checksum_of_data(task)

    def _is_of_this_data(self, result: dict[str, Any]) -> bool:
        return self._checksum in (None, result.get("data"))  # without a dataset here, what is there stays

    def get(self, name: str, seed: int, make: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any]:
        """Return a result from its file, or make it and write it."""
        if self._folder is None:
            return make(*args)
        path = self._folder / f"{name}-{seed}.json"
        if path.exists() and self._is_of_this_data(kept := json.loads(path.read_text())):
            return dict(kept)
        result = make(*args)
        if self._checksum is not None:
            result["data"] = self._checksum
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".tmp")
        unfinished.write_text(json.dumps(result) + "\n")
        unfinished.replace(path)
        return result

    def all(self) -> list[dict[str, Any]]:
        """Return every result that was kept, in this run or before; ours come first."""
        assert self._folder is not None
        every = [json.loads(path.read_text()) for path in sorted(self._folder.glob("*.json"))]
        kept = [result for result in every if self._is_of_this_data(result)]
        return sorted(kept, key=lambda result: (result["peer"] != "rlcore", result["peer"], result["seed"]))


def table(task: str, results: list[dict[str, Any]]) -> str:
    """Return the results as Markdown."""
    lines = [f"## {task}", "", "| peer | seeds | results | median | mean ± std over seeds |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(result["peer"] for result in results):
        rows = sorted((result for result in results if result["peer"] == name), key=lambda row: row["seed"])
        means = [row["mean"] for row in rows]
        deviation = statistics.stdev(means) if len(means) > 1 else 0.0
        seeds = ", ".join(str(row["seed"]) for row in rows)
        listed = ", ".join(f"{mean:,.1f}" for mean in means)
        middle, average = statistics.median(means), statistics.fmean(means)
        lines.append(f"| {name} | {seeds} | {listed} | {middle:,.1f} | {average:,.1f} ± {deviation:,.1f} |")
    return "\n".join(lines)


def main() -> None:
    """Run the seeds and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=list(TASKS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--jobs", type=int, default=2, help="seeds at a time; nothing is timed here")
    parser.add_argument("--peers-python", help="interpreter of the peers' environment")
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="override a config key")
    parser.add_argument("--ranks", type=int, help="train in so many processes; the result is the last evaluation")
    parser.add_argument("--one", type=int, metavar="SEED", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one is not None:
        print(json.dumps(train_here(args.task, args.one, args.set)))
        return
    kept = Kept(args.task, keep=not args.set)
    with ThreadPoolExecutor(args.jobs) as pool:
        name, train = "rlcore", in_process
        if args.ranks is not None:
            name, train = f"rlcore-{args.ranks}-ranks", partial(in_ranks, args.ranks)
        waiting = [pool.submit(kept.get, name, seed, train, args.task, seed, args.set) for seed in args.seeds]
        if args.peers_python:
            for name in PEERS.get(args.task, ()):
                waiting += [
                    pool.submit(kept.get, name, seed, peer, args.peers_python, args.task, name, seed)
                    for seed in args.seeds
                ]
        results = [future.result() for future in waiting]
    if not args.set:
        results = kept.all()
    text = table(args.task, results)
    print(text)
    if not args.set:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"learning-{args.task}.md").write_text(f"# Learning\n\n{text}\n")


if __name__ == "__main__":
    main()
