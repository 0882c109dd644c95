"""What a new user does, from the wheels alone: install, take a preset, train two seeds, compare, export the policy.

Run it as a program; it prints each step with the seconds that it took. Third-party packages are linked from the
environment that runs this; with `--from-index` pip installs them as a user's pip would.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fresh_venv import ROOT, FreshVenv, build_wheels, environment

SOURCES = [ROOT, *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]

# the policy in a script: the observations are those of the env, and nothing but the agent is built
PLAY = """
import json
import sys

import gymnasium

import rlcore

agent = rlcore.load_agent(sys.argv[1])
env = gymnasium.make(sys.argv[2])
returns = []
for seed in json.loads(sys.argv[3]):
    observation, _ = env.reset(seed=seed)
    agent.reset()
    over, total = False, 0.0
    while not over:
        observation, reward, terminated, truncated, _ = env.step(agent.act(observation))
        over, total = terminated or truncated, total + float(reward)
    returns.append(total)
print(json.dumps(returns))
"""


class Steps:
    """Makes steps, and keeps how long each took."""

    def __init__(self):
        self.seconds = {}

    def __call__(self, name, call):
        """Make a step and return what it gave."""
        began = time.monotonic()
        answer = call()
        self.seconds[name] = time.monotonic() - began
        print(f"{self.seconds[name]:7.1f} s  {name}", flush=True)
        return answer


def fresh(folder, dist):
    """Return a new environment with the wheels, and third-party packages linked into it."""
    venv = FreshVenv(folder)
    venv.install(*sorted(dist.glob("*.whl")))
    return venv


def from_index(folder, dist):
    """Return a new environment into which pip installs `rlcore[standard]`, our wheels and what they need."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    words = ["install", "-q", "-c", ROOT / "constraints.txt", "--find-links", dist, "rlcore[standard]"]
    subprocess.run([str(word) for word in (folder / "bin" / "pip", *words)], check=True, env=environment())
    venv = FreshVenv.__new__(FreshVenv)
    venv.bin = folder / "bin"
    return venv


def differences(expected, found):
    """Return the largest difference of two lists of returns."""
    assert len(expected) == len(found) > 0
    return max(abs(one - other) for one, other in zip(expected, found, strict=True))


def use(venv, folder, env, frames, steps, export_format="torch-export"):
    """Do what a user does in an empty folder; return the difference between the run's returns and the export's."""

    def rlcore(*words):
        return venv.run("rlcore", *words, cwd=folder)

    steps("init", lambda: rlcore("init", "ppo", "--env", env, "--name", "first"))
    setting = ["--set", f"run.total_frames={frames}"]
    steps("train two seeds", lambda: rlcore("train", "first.toml", "--seeds", "2", "--jobs", "2", *setting))
    runs = sorted((folder / "runs").iterdir())
    assert len(runs) == 2, runs
    table = steps("compare", lambda: rlcore("compare", *runs))
    assert "| " in table, table
    evaluated = json.loads(steps("evaluate", lambda: rlcore("evaluate", runs[0], "--json")))["data"]
    seeds = json.dumps(evaluated["seeds"])
    played = steps("load the agent", lambda: venv.run("python", "-c", PLAY, runs[0], env, seeds, cwd=folder))
    file = folder / "policy.pt2"
    steps("export", lambda: rlcore("export", runs[0], "--format", export_format, "--output", file))
    exported = steps("evaluate the export", lambda: venv.run("python", "-c", PLAY, file, env, seeds, cwd=folder))
    return [differences(evaluated["returns"], json.loads(returns)) for returns in (played, exported)]


def main():
    """Do it, and say how far the returns of the agent and of the export are from those of the run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from-index", action="store_true", help="install as a user's pip would")
    parser.add_argument("--env", default="CartPole-v1", help="default: CartPole-v1")
    parser.add_argument("--frames", type=int, default=20_000, help="default: 20,000")
    options = parser.parse_args()
    steps = Steps()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        dist = steps("build the wheels", lambda: build_wheels(SOURCES, folder / "wheels"))
        install = from_index if options.from_index else fresh
        venv = steps("install", lambda: install(folder / "venv", dist))
        (folder / "work").mkdir()
        far = use(venv, folder / "work", options.env, options.frames, steps)
    print(f"largest difference of a return: agent {far[0]:.2g}, export {far[1]:.2g}")
    if max(far) > 1e-5:
        raise SystemExit("the returns differ")


if __name__ == "__main__":
    main()
