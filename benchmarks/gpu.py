"""What a GPU is asked that is to be had for minutes: tests on it, then how fast runs with envs of tensors are.

    make gpu
    .venv/bin/python benchmarks/gpu.py --device pretend --small --output /tmp/gpu.md

Each row of the table is a process of its own that ends at a limit, the shortest first after the tests, and the table is
written after each. What stands above the table in `results/gpu.md` stays. To add a row, add to `WORK`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Final

import torch
from bench import RESULTS, machine
from device_envs import trainer_of

ROOT: Final = Path(__file__).resolve().parents[1]
SECTION: Final = "## Envs of tensors"
COMPILED: Final = ("collector.compile=true", "learner.compile=true")


@dataclass(frozen=True)
class Work:
    """A run that is measured, eager and compiled.

    Attributes:
        example: what its config begins with.
        changes: of that config.
        num_envs: how many envs step together.
        steps: of each env in an iteration.
        minibatches: of an epoch.
        goal: frames per second of the compiled run; None to compare it with the eager one.
    """

    example: str
    changes: tuple[str, ...]
    num_envs: int
    steps: int
    minibatches: int
    goal: float | None = None


WORK: Final = {
    "PPO, CartPole, 4,096 envs": Work(
        "ppo-cartpole.toml", ("scheduler=[]", "optimizer.lr=1e-3"), 4096, 128, 4, goal=5_000_000
    ),
    "PQN, CartPole, 4,096 envs": Work("pqn-cartpole.toml", ("scheduler=[]", "optimizer.use=adam"), 4096, 32, 16),
    "SAC, Pendulum, 256 envs": Work("sac-pendulum-device.toml", ("buffer.minibatch_size=512",), 256, 1, 1),
}


@dataclass
class Result:
    """What came of a row.

    Attributes:
        figure: in words.
        rate: frames per second; None of tests and of what failed.
    """

    figure: str
    rate: float | None = None


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        name: what is measured.
        limit: seconds after which it is ended.
        command: of its process.
        read: makes the result of the exit code, None at the limit, and of the output.
        environment: variables besides those that there are.
        beside: the row that it is compared with, or a goal.
    """

    name: str
    limit: float
    command: list[str]
    read: Callable[[int | None, str], Result]
    environment: Mapping[str, str] = field(default_factory=dict)
    beside: str | float | None = None


def tests_read(code: int | None, output: str) -> Result:
    """Return how many tests passed, and the names of those that did not; also where they were cut off."""
    lines = [line.split() for line in output.splitlines() if ".py" in line]
    names = {
        outcome: {next(word for word in line if ".py" in word) for line in lines if outcome.upper() in line}
        for outcome in ("passed", "failed", "error", "skipped")
    }
    counts = ", ".join(f"{len(found)} {outcome}" for outcome, found in names.items() if found)
    wrong = "".join(f"; `{name}`" for name in sorted(names["failed"] | names["error"]))
    cut = " until the limit" if code is None else ""
    return Result((counts or f"none: {_last_line(output)}") + cut + wrong)


def rate_read(code: int | None, output: str) -> Result:
    """Return what a measured run printed."""
    if code is None:
        return Result("cut off at its limit")
    if code:
        return Result(f"failed: {_last_line(output)}")
    found = json.loads(next(line for line in reversed(output.splitlines()) if line.startswith("{")))
    words = f"{found['rate']:,.0f} frames/s, {found['first']:.1f} s to the first updates, return {found['return']:.0f}"
    return Result(words, found["rate"])


def _last_line(output: str) -> str:
    lines = output.strip().splitlines() or ["nothing was printed"]
    return lines[-1].replace("|", "/")[:500]


def rows_of(device: str, small: bool) -> list[Row]:
    """Return the rows, the tests first."""
    # the options of pyproject.toml would refuse what a plugin of pytest reads that is not installed
    pytest = [sys.executable, "-m", "pytest", "-v", "-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider"]
    pytest.append("--continue-on-collection-errors")
    if device == "pretend":
        pytest += ["-p", "rlcore_plugin_testing.pretend_device"]
    if find_spec("xdist") and not small:
        pytest += ["-n", "4"]
    tests = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("plugins/*/tests/**/test_*.py")]
    marked = sorted(str(path) for path in tests if "mark.cuda" in path.read_text())
    suites = [str(path) for path in _suites(["mlp"] if small else ["device", "torch-envs", "ppo", "pqn", "*"])]
    of_suites = [*pytest, "-p", "tests.pretend_device.those_with_tensors", "-k", "runs_and_resumes", *suites]
    on_it = {"RLCORE_TEST_DEVICE": device}
    rows = [
        Row("tests that need CUDA", 60, [*pytest, "-m", "cuda", *marked], tests_read),
        Row("components train and resume", 150, of_suites, tests_read, on_it),
    ]
    measured = [sys.executable, __file__, "--device", device, *(["--small"] if small else []), "--only"]
    rows += [Row(name, 30, [*measured, name], rate_read) for name in WORK]
    if device == "cuda":  # nothing is compiled on a pretended device
        rows += [
            Row(f"{name}, compiled", 90, [*measured, name, "--compiled"], rate_read, beside=work.goal or name)
            for name, work in WORK.items()
        ]
    return rows


def _suites(plugins: list[str]) -> list[Path]:
    """Return the contract suites of these plugins, as far as they are installed, in this order: the limit may come."""
    installed = {distribution.name for distribution in distributions()}
    found = [path for name in plugins for path in sorted(ROOT.glob(f"plugins/rlcore-plugin-{name}/tests"))]
    suites = [path / "test_contracts.py" for path in dict.fromkeys(found) if path.parent.name in installed]
    return [path for path in suites if path.exists()]


def measured(work: Work, device: str, compiled: bool, small: bool) -> dict[str, float]:
    """Train for some seconds, and return frames per second, the seconds until then, and the greedy return."""
    torch.set_num_threads(1)
    num_envs, steps = (8, max(8, work.minibatches)) if small else (work.num_envs, work.steps)
    changes = ["env.use=torch-envs", "collector.use=device", *work.changes, *(COMPILED if compiled else ())]
    example = ROOT / "examples" / work.example
    trainer = trainer_of([*changes, "evaluator.episodes=10"], num_envs, example, steps, work.minibatches, device)
    iterator, began = iter(trainer), perf_counter()
    progress = next(iterator)
    while not progress.updates:
        progress = next(iterator)
    next(iterator)
    _wait(device)
    first, frames, began = perf_counter() - began, progress.frames, perf_counter()
    until = began + (0.1 if small else 5.0)
    while perf_counter() < until:
        progress = next(iterator)
    _wait(device)
    rate = (progress.frames - frames) / (perf_counter() - began)
    returns = trainer.evaluate().returns
    return {"rate": rate, "first": first, "return": sum(returns) / len(returns)}


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def outcome_of(row: Row, limit: float) -> Result:
    """Run a row in a process of its own, and end it and what it started at the limit."""
    process = subprocess.Popen(
        row.command,
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | row.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, code = process.communicate()[0], None
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return row.read(code, output)


class Table:
    """The table as it grows, under what else is in its file.

    Args:
        path: of the file.
        about: the machine, in words.
    """

    def __init__(self, path: Path, about: str) -> None:
        self._path = path
        above = path.read_text().partition(SECTION)[0] if path.exists() else "# On a GPU\n\n"
        self._lines = [above + SECTION, "", about, "", "| row | result | beside | ratio | seconds |"]
        self._lines.append("|---|---|---|---|---|")
        self._rates: dict[str, float | None] = {}

    def add(self, row: Row, result: Result, seconds: float) -> None:
        """Write the file with one more row."""
        self._rates[row.name] = result.rate
        goal = row.beside if not isinstance(row.beside, str) else self._rates.get(row.beside)
        beside = "" if row.beside is None else row.beside if isinstance(row.beside, str) else f"goal {row.beside:,.0f}"
        ratio = f"{result.rate / goal:.2f}" if result.rate and goal else ""
        self._lines.append(f"| {row.name} | {result.figure} | {beside} | {ratio} | {seconds:.0f} |")
        print(self._lines[-1], flush=True)
        written = self._path.with_name(self._path.name + ".new")
        written.write_text("\n".join([*self._lines, ""]))
        written.replace(self._path)


def about(device: str) -> str:
    """Describe the device, its driver, and the versions."""
    if device != "cuda":
        return f"The {device} device, which is no GPU; {machine()}."
    asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[0]
    return f"{torch.cuda.get_device_name()}, driver {driver}, CUDA {torch.version.cuda}; {machine()}."


def main() -> None:
    """Run every row for which there is time, or measure one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "pretend"])
    parser.add_argument("--seconds", type=float, default=480, help="for all of it")
    parser.add_argument("--small", action="store_true", help="few tests, few envs, for a moment")
    parser.add_argument("--output", type=Path, default=RESULTS / "gpu.md")
    parser.add_argument("--only", choices=WORK, metavar="WORK", help="measure it here, and print JSON")
    parser.add_argument("--compiled", action="store_true", help="of --only")
    args = parser.parse_args()
    if args.device == "pretend":
        from rlcore_plugin_testing import pretend_device

        pretend_device.install()
    elif not torch.cuda.is_available():
        parser.error("torch sees no CUDA device here; --device pretend --small tries everything without one")
    if args.only:
        print(json.dumps(measured(WORK[args.only], args.device, args.compiled, args.small)))
        return
    table, ends = Table(args.output, about(args.device)), perf_counter() + args.seconds
    for row in rows_of(args.device, args.small):
        began = perf_counter()
        left = ends - began
        result = outcome_of(row, min(row.limit, left)) if left > 5 else Result("not begun: the time is over")
        table.add(row, result, perf_counter() - began)


if __name__ == "__main__":
    main()
