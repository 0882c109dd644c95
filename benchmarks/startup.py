"""Seconds that the command line takes to answer without training, and what it imported.

The last row has fifty more plugins installed, each of which would end the process if it were imported.

    python benchmarks/startup.py

With several processes: seconds from a fresh interpreter to the first result of a group of learners, and from the
command to the first iteration of a run with ranks, each beside one process, in turn.

    OMP_NUM_THREADS=1 python benchmarks/startup.py --learners 0 2 --ranks 1 2
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import RESULTS, machine, spread
from learners import Side
from ranks import HOOK

PLUGINS = 50
ROUNDS = 7
COMMANDS = (["--help"], ["plugins", "list"], ["config", "check", "examples/ppo-idp.toml"])
EXAMPLE = "examples/ppo-cartpole.toml"
PROBE = (
    "import sys; from rlcore.cli.command_line import main\n"
    "try: main(sys.argv[1:])\n"
    "except SystemExit as stop: assert not stop.code, stop\n"
    "sys.stderr.write(str('torch' in sys.modules or 'tensordict' in sys.modules))"
)


def install(folder: Path) -> None:
    """Write distributions whose modules must not be imported."""
    for number in range(PLUGINS):
        name = f"rlcore_plugin_number_{number}"
        (folder / f"{name}.py").write_text("raise SystemExit('a plugin was imported that nothing named')\n")
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: rlcore>=0.1,<1\n"
        (info / "METADATA").write_text(metadata)
        (info / "entry_points.txt").write_text(f"[rlcore]\nnumber-{number} = {name}\n")


def row(command: list[str], path: str = "") -> str:
    """Return a row of the table: the median over some rounds, and whether torch was imported."""
    seconds = []
    environment = os.environ | ({"PYTHONPATH": path} if path else {})
    for _ in range(ROUNDS):
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", PROBE, *command], capture_output=True, text=True, env=environment)
        seconds.append(time.perf_counter() - began)
        if done.returncode or (path and f"number-{PLUGINS - 1}" not in done.stdout):
            raise SystemExit(done.stderr)
    imported = "yes" if done.stderr.endswith("True") else "no"
    more = f", {PLUGINS} more plugins installed" if path else ""
    return f"| `rlcore {' '.join(command)}`{more} | {statistics.median(seconds):.2f} | {imported} |"


def until_first_result(learners: int) -> float:
    """Return the seconds until a group of learners in a fresh interpreter has its first result."""
    sizes = argparse.Namespace(net="2x64", minibatch=128, rows=512)
    side = Side(sys.executable, "rlcore", learners, "eager", sizes)
    side.end()
    return side.first


def until_first_iteration(ranks: int, folder: Path) -> float:
    """Return the seconds until a run of the example has done an iteration."""
    times = folder / "times"
    times.unlink(missing_ok=True)
    several = ["--set", f"ranks.count={ranks}"] if ranks > 1 else []
    watch = ["hook.use=iteration-times", f"hook.path={times}", "hook.at_once=true", f'plugins.files=["{HOOK}"]']
    place = [f"run.folder={folder}", f"run.name=run-{time.monotonic_ns()}"]
    options = [word for setting in (*watch, *place) for word in ("--set", setting)]
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "rlcore", "train", EXAMPLE, "--quiet", *several, *options], stderr=subprocess.DEVNULL
    )
    while not times.is_file() or not times.read_text().endswith("\n"):
        if process.poll() is not None:
            raise SystemExit(f"rlcore train with {ranks} ranks ended with {process.returncode}")
        time.sleep(0.005)
    first = float(times.read_text().split()[0])
    process.terminate()
    process.wait()
    return first - began


def several(args: argparse.Namespace) -> None:
    """Print and write the table of several processes."""
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.rounds):
            for count in args.learners:
                found.setdefault(f"{count} learners, first result", []).append(until_first_result(count))
            for count in args.ranks:
                side = f"`rlcore train` with {count} {'rank' if count == 1 else 'ranks'}, first iteration"
                found.setdefault(side, []).append(until_first_iteration(count, Path(folder)))
    rows = [f"| {side} | {spread(seconds)} |" for side, seconds in found.items()]
    text = (
        f"# Start-up of several processes\n\n{machine()}; load {os.getloadavg()[0]:.1f} at the end. Medians of "
        f"{args.rounds} rounds, sides in turn, with the range.\n\n| what | seconds |\n|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )
    (RESULTS / "startup-ranks.md").write_text(text)
    print(text)


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learners", type=int, nargs="+", default=[], help="groups of so many")
    parser.add_argument("--ranks", type=int, nargs="+", default=[], help="runs with so many")
    parser.add_argument("--rounds", type=int, default=5, help="of several processes")
    args = parser.parse_args()
    if args.learners or args.ranks:
        several(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        install(Path(folder))
        rows = [*(row(command) for command in COMMANDS), row(["plugins", "list"], folder)]
    lines = ["| command | seconds | imports torch |", "|---|---|---|", *rows]
    text = f"# Start-up\n\n{machine()}. Median of {ROUNDS}.\n\n" + "\n".join(lines) + "\n"
    (RESULTS / "startup.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
