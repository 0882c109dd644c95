"""Runs the speed comparison of PPO with an LSTM in rounds: rlcore, eager and compiled, and peers.

    python benchmarks/bench_lstm.py --peers-python .venv-peers/bin/python --rllib-python .venv-rllib/bin/python

CartPole without its velocities, 8 envs, an LSTM of 64 that actor and critic share, stretches of 32 steps, one thread. A
ratio is that of two processes of one round; every round has the other order than the one before. RLlib needs an
environment of its own, with `ray[rllib]==2.60.0`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys

from bench import RESULTS, ROWS, machine, run
from bench_pong import table

WORKLOAD = "lstm-cartpole"
OURS: dict[str, list[str]] = {"rlcore": [], "rlcore, compiled": ["--compile"]}


def main() -> None:
    """Run, and write the results after every round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--frames", type=int, default=10_240, help="of each, two batches of warm-up included")
    parser.add_argument("--peers-python", help="interpreter of an environment with sb3-contrib and TorchRL")
    parser.add_argument("--rllib-python", help="interpreter of an environment with RLlib")
    args = parser.parse_args()
    scripts = {name: (sys.executable, "rlcore_lstm_ppo", flags) for name, flags in OURS.items()}
    if args.peers_python:
        scripts |= {name: (args.peers_python, f"{name}_lstm_ppo", []) for name in ("sb3", "torchrl")}
    if args.rllib_python:
        scripts["rllib"] = (args.rllib_python, "rllib_lstm_ppo", [])
    rounds, name = [], "speed-lstm"
    for number in range(args.rounds):
        names = list(scripts) if number % 2 == 0 else list(reversed(scripts))
        found = {name: run(*scripts[name][:2], WORKLOAD, args.frames, scripts[name][2]) for name in names}
        rounds.append({name: result for name, result in found.items() if result})
        (ROWS / f"{name}.json").write_text(json.dumps(rounds, indent=1) + "\n")
        lines = ["# Speed, PPO with an LSTM on CartPole without its velocities, one thread", ""]
        lines += [f"{datetime.date.today()}, {machine()}.", "", *table(rounds, list(scripts), list(OURS))]
        (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n")
    print((RESULTS / f"{name}.md").read_text())


if __name__ == "__main__":
    main()
