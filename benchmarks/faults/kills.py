"""Kills small runs of every way to learn at 100 random moments each; compares them with undisturbed ones to the bit.

    python benchmarks/faults/kills.py
    python benchmarks/faults/kills.py --kills 20 --runs SAC R2D2

Each run saves after every iteration. It is killed by SIGKILL at a random moment (anywhere, in the middle of an update,
at a file event of a save) and resumed, again and again; where it ends before all kills are used up, another begins.
This is the row of `rlcore prove CONFIG --kills 100`, for the runs of `kill_runs.py`; of those with several ranks any is
killed, and all begin again. Results stay in `results/rows/kills.json` from one call to the next, and
`results/kills.md` is written from them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import tomli_w
import torch
from kill_runs import BASE, DATA, RUNS
from rlcore_plugin_testing.faults.killer import Launcher
from rlcore_plugin_testing.prove.ranks import RankRuns
from rlcore_plugin_testing.prove.runs import Runs
from rlcore_plugin_testing.prove.subject import ITERATIONS, make_subject
from tqdm import tqdm

from rlcore.cli import command_line
from rlcore.errors import RlcoreError

RESULTS = Path(__file__).resolve().parent.parent / "results"
HEADING = """\
# Killed and resumed

{machine}: `benchmarks/faults/kills.py`. Small runs of every way to learn, each with {iterations} iterations of
updates and a checkpoint after every one, struck by SIGKILL at random moments and resumed until they are done; then
begun again, until all kills are used up. "Equal" means that the observations, actions, rewards, metrics and parameters
of every iteration, repeated ones included, have the hashes of an undisturbed run, and that `metrics.csv` has its bytes.

| run | kills | runs | iterations repeated in the last | outcome |
|---|---|---|---|---|
"""


def main() -> None:
    """Kill the named runs, and write both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--runs", nargs="+", choices=RUNS, default=list(RUNS), metavar="RUN")
    options = parser.parse_args()
    for name in options.runs:
        began = time.monotonic()
        record = {**killed(name, options.kills), "seconds": round(time.monotonic() - began)}
        print(f"{name}: {record}", flush=True)
        _write(name, record)


def killed(name: str, kills: int) -> dict[str, Any]:
    """Return what came of a run that was killed so often."""
    with tempfile.TemporaryDirectory(prefix="kills-") as folder, tqdm(total=kills, desc=name) as bar:
        scratch = Path(folder)
        config = scratch / "config.toml"
        sections = {section: value for section, value in {**BASE, **RUNS[name]}.items() if value != []}
        config.write_text(tomli_w.dumps(sections))
        if sections["buffer"].get("path") == DATA:
            sections["buffer"] = {**sections["buffer"], "path": _recorded(config)}
            config.write_text(tomli_w.dumps(sections))
        subject = make_subject(config, (), (), (), scratch, ITERATIONS)

        def step(what: str) -> None:
            bar.update(what == "kill")

        with Launcher(scratch, scratch / "output") as launcher:
            learnt = launcher.learn(["train", str(subject.job("dry").config), "--dry-run"])
            if learnt.wait(0):
                raise RlcoreError(f"{name} cannot be built:\n{learnt.text()}")
            row = (Runs if subject.config.ranks is None else RankRuns)(subject, launcher, step).killed(kills)
    return {"claim": row.claim, "verdict": row.verdict, "figures": row.figures, "load": round(os.getloadavg()[0], 1)}


def _recorded(config: Path) -> str:
    """Return a dataset of random episodes in the env of a config."""
    data = config.with_name(DATA)
    arguments = ["data", "record", str(config), "--random", "--episodes", "8", "--out", str(data)]
    if command_line.main(arguments):
        raise RlcoreError(f"{config}: its data cannot be recorded")
    return str(data)


def _write(name: str, record: dict[str, Any]) -> None:
    file = RESULTS / "rows" / "kills.json"
    records = json.loads(file.read_text()) if file.exists() else {}
    records[name] = record
    file.write_text(json.dumps({name: records[name] for name in RUNS if name in records}, indent=1) + "\n")
    machine = f"{os.cpu_count()} cores, torch {torch.__version__}, one thread"
    rows = [_row(name, records[name]) for name in RUNS if name in records]
    (RESULTS / "kills.md").write_text(HEADING.format(machine=machine, iterations=ITERATIONS) + "\n".join(rows) + "\n")


def _row(name: str, record: dict[str, Any]) -> str:
    count = next(word for word in record["claim"].split() if word.isdecimal())
    if record["verdict"] != "holds":
        return f"| {name} | {count} | | | {record['verdict']}: {record['figures']} |"
    runs, repeated = re.search(r"over (\d+) runs.*?(\d+) iterations repeated", record["figures"]).groups()
    return f"| {name} | {count} | {runs} | {repeated} | equal |"


if __name__ == "__main__":
    main()
