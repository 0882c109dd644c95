"""Kills small runs of every way to learn at 100 random moments each; compares them with undisturbed ones to the bit.

    python benchmarks/faults/kills.py
    python benchmarks/faults/kills.py --kills 20 --runs SAC R2D2
    python benchmarks/faults/kills.py --config my-run.toml

Each run saves after every iteration. It is killed by SIGKILL at a random moment (anywhere, in the middle of an update,
at a file event of a save) and resumed, again and again; where it ends before all kills are used up, another begins.
This is the row of `rlcore prove CONFIG --kills 100`, for the runs of `kill_runs.py` or for configs, whose row has the
name of their run; of those with several ranks any is killed, and all begin again. The last checkpoint of each run is
compared too, but for the state of loggers. Results stay in `results/rows/kills.json` from one call to the next, and
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

from rlcore.checkpoints.manifest import scan
from rlcore.cli import command_line
from rlcore.config.file import read
from rlcore.errors import RlcoreError

RESULTS = Path(__file__).resolve().parent.parent / "results"
HEADING = """\
# Killed and resumed

{machine}: `benchmarks/faults/kills.py`. Small runs of every way to learn, each with {iterations} iterations of
updates and a checkpoint after every one, struck by SIGKILL at random moments and resumed until they are done; then
begun again, until all kills are used up. "Equal" means that the observations, actions, rewards, metrics and parameters
of every iteration, repeated ones included, have the hashes of an undisturbed run, and that `metrics.csv` has its bytes;
"to the last checkpoint" that the state in it is equal too.

| run | kills | runs | iterations repeated in the last | outcome |
|---|---|---|---|---|
"""


def main() -> None:
    """Kill the named runs, and write both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--runs", nargs="+", choices=RUNS, default=list(RUNS), metavar="RUN")
    parser.add_argument("--config", nargs="+", type=Path, metavar="FILE", help="instead of RUNS")
    options = parser.parse_args()
    runs = {name: {**BASE, **RUNS[name]} for name in options.runs}
    if options.config:
        configs = [read(path).values for path in options.config]
        runs = {values["run"]["name"]: values for values in configs}
    for name, sections in runs.items():
        began = time.monotonic()
        record = {**killed(name, sections, options.kills), "seconds": round(time.monotonic() - began)}
        print(f"{name}: {record}", flush=True)
        _write(name, record)


def killed(name: str, sections: dict[str, Any], kills: int) -> dict[str, Any]:
    """Return what came of a run that was killed so often."""
    with tempfile.TemporaryDirectory(prefix="kills-") as folder, tqdm(total=kills, desc=name) as bar:
        scratch = Path(folder)
        config = scratch / "config.toml"
        sections = {section: value for section, value in sections.items() if value != []}
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
        other = _of_another_state(scratch / "runs") if row.verdict == "holds" else []
        if other:
            raise RlcoreError(f"{name}: the last checkpoints of a run without kills differ in: {', '.join(other)}")
    load = round(os.getloadavg()[0], 1)
    return {"claim": row.claim, "verdict": row.verdict, "figures": row.figures, "checkpoint": "equal", "load": load}


def _recorded(config: Path) -> str:
    """Return a dataset of random episodes in the env of a config."""
    data = config.with_name(DATA)
    arguments = ["data", "record", str(config), "--random", "--episodes", "8", "--out", str(data)]
    if command_line.main(arguments):
        raise RlcoreError(f"{config}: its data cannot be recorded")
    return str(data)


def _of_another_state(runs: Path) -> list[str]:
    """Return the parts whose last state is another in a killed run than in the reference, but for loggers."""
    wanted, *others = (
        scan(runs / job / "checkpoints").entries[-1].manifest["digests"]
        for job in ("reference", *(found.name for found in runs.glob("killed-*")))
    )
    names = {name for digests in others for name in {*wanted, *digests} if digests.get(name) != wanted.get(name)}
    return sorted(name for name in names if not name.startswith("logger."))


def _write(name: str, record: dict[str, Any]) -> None:
    file = RESULTS / "rows" / "kills.json"
    records = json.loads(file.read_text()) if file.exists() else {}
    records[name] = record
    records = {name: records[name] for name in {**RUNS, **records} if name in records}
    file.write_text(json.dumps(records, indent=1) + "\n")
    machine = f"{os.cpu_count()} cores, torch {torch.__version__}, one thread"
    rows = [_row(name, record) for name, record in records.items()]
    (RESULTS / "kills.md").write_text(HEADING.format(machine=machine, iterations=ITERATIONS) + "\n".join(rows) + "\n")


def _row(name: str, record: dict[str, Any]) -> str:
    count = next(word for word in record["claim"].split() if word.isdecimal())
    if record["verdict"] != "holds":
        return f"| {name} | {count} | | | {record['verdict']}: {record['figures']} |"
    runs, repeated = re.search(r"over (\d+) runs.*?(\d+) iterations repeated", record["figures"]).groups()
    outcome = "equal to the last checkpoint" if "checkpoint" in record else "equal"
    return f"| {name} | {count} | {runs} | {repeated} | {outcome} |"


if __name__ == "__main__":
    main()
