"""Seconds until the console shows a folder of many long runs, and what a page that polls it costs a training beside.

    python benchmarks/console.py --runs 200 --rows 1_000_000

The runs are made in a folder that is removed at the end; 200 of a million rows take 7 GB. The training goes on from
begin to end of the measurement; a page of it polls in every second slice of the time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench import RESULTS, machine, spread

KEYS = ("episode/return", "episode/length", *(f"train/number_{number}" for number in range(8)))
EVALUATIONS, EPISODES = 100, 10
POLL_SECONDS = 2.0
RLCORE = (sys.executable, "-m", "rlcore.cli.command_line")
# long enough for any number of slices
FRAMES = 100_000_000


def write_runs(folder: Path, runs: int, rows: int) -> None:
    """Write run folders with tables of so many rows."""
    lines = (
        f"{32 * step},{key},{step * 0.001 + (step * 7919 + place) % 97}"
        for step in range(rows // len(KEYS))
        for place, key in enumerate(KEYS)
    )
    metrics = "frames,key,value\n" + "\n".join(lines) + "\n"
    frames = 32 * (rows // len(KEYS))
    evaluations = "frames,seed,return,length\n" + "".join(
        f"{frames * number // EVALUATIONS},{10_000 + episode},{number + episode}.0,{number + episode}\n"
        for number in range(EVALUATIONS)
        for episode in range(EPISODES)
    )
    for number in range(runs):
        run = folder / f"made-{number:03}"
        run.mkdir(parents=True)
        sets = [f"run.name=made-{number:03}", f"run.seed={number % 5}", f"optimizer.0.lr={(1 + number // 5) * 1e-5}"]
        (run / "config.toml").write_text(config(sets) if number == 0 else edited(folder, number))
        (run / "metrics.csv").write_text(metrics)
        (run / "evaluations.csv").write_text(evaluations)
        (run / "status.json").write_text(json.dumps({"state": "done", "frames": frames, "time": "2026-01-01T00:00:00"}))


def config(sets: list[str]) -> str:
    """Return the resolved config of the example."""
    flags = [f"--set={each}" for each in sets]
    return subprocess.run(
        [*RLCORE, "config", "show", "examples/ppo-cartpole.toml", *flags], capture_output=True, text=True, check=True
    ).stdout


def edited(folder: Path, number: int) -> str:
    """Return the config of the first run with another name, seed and learning rate."""
    text = (folder / "made-000" / "config.toml").read_text()
    rate = f"lr = {(1 + number // 5) * 1e-5}"
    return (
        text.replace("made-000", f"made-{number:03}")
        .replace("seed = 0", f"seed = {number % 5}", 1)
        .replace("lr = 1e-05", rate, 1)
    )


class Page:
    """What a browser asks, without a browser."""

    def __init__(self, url: str) -> None:
        self._base, _, token = url.partition("/?token=")
        self._headers = {"Authorization": f"Bearer {token}"}
        self.seen = self.curves_seen = ""

    def get(self, path: str) -> Any:
        """Return the JSON at an address; None where nothing is new."""
        with urllib.request.urlopen(
            urllib.request.Request(self._base + path, headers=self._headers), timeout=120
        ) as answer:
            content = answer.read()
        return json.loads(content) if content else None

    def open(self) -> tuple[float, float]:
        """Return the seconds until the first rows are there, and until all are."""
        begin = time.perf_counter()
        news = self.get("/api/runs")
        first = time.perf_counter() - begin
        while news["pending"]:
            news = self.get(f"/api/runs?seen={quote(news['version'])}") or {"pending": True, "version": news["version"]}
        self.seen = news["version"]
        return first, time.perf_counter() - begin

    def poll(self, run: str) -> None:
        """Ask what the page of a run asks at each turn."""
        if news := self.get(f"/api/runs?seen={quote(self.seen)}"):
            self.seen = news["version"]
            self.get(f"/api/run?run={run}")
        if curves := self.get(f"/api/curves?run={run}&seen={quote(self.curves_seen)}"):
            self.curves_seen = curves["version"]


@contextmanager
def serving(folder: Path) -> Iterator[tuple[int, Page]]:
    """Yield the process of a console over a folder, and a page of it."""
    process = subprocess.Popen([*RLCORE, "serve", str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.pid, Page(process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait()


@contextmanager
def training(folder: Path) -> Iterator[int]:
    """Train in the folder, yield the number of the process, and stop."""
    sets = [
        "run.name=trained",
        f"run.folder={folder}",
        f"run.total_frames={FRAMES}",
        "metrics.every=512",
        "run.threads=1",
    ]
    command = [*RLCORE, "train", "examples/ppo-cartpole.toml", "--quiet", *(f"--set={each}" for each in sets)]
    process = subprocess.Popen(command)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def frames_of(run: Path) -> int:
    """Return how far a run is by its table."""
    with (run / "metrics.csv").open("rb") as stream:
        stream.seek(max(0, os.path.getsize(run / "metrics.csv") - 4096))
        return int(stream.read().rpartition(b"\n")[0].rpartition(b"\n")[2].split(b",")[0])


def cpu_seconds(pid: int) -> float:
    """Return the time that a process has had of a processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def slice_of(run: Path, trainer: int, seconds: float, page: Page | None) -> tuple[float, float]:
    """Return frames per second, and per second of processor, of a slice in which a page polls or does not."""
    begin, first, used = time.perf_counter(), frames_of(run), cpu_seconds(trainer)
    while (left := begin + seconds - time.perf_counter()) > 0:
        if page is not None:
            page.poll(run.name)
        time.sleep(min(POLL_SECONDS, left))
    frames = frames_of(run) - first
    return frames / (time.perf_counter() - begin), frames / (cpu_seconds(trainer) - used)


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--slices", type=int, default=20, help="of each kind")
    parser.add_argument("--seconds", type=float, default=10.0, help="of a slice")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        write_runs(folder, options.runs, options.rows)
        lines = [f"Load before: {os.getloadavg()[0]:.1f}.", "", *opened(folder, options), *beside(folder, options)]
    text = "\n".join(["# The console", "", machine(), "", *lines, ""])
    print(text)
    (RESULTS / "console.md").write_text(text)


def opened(folder: Path, options: argparse.Namespace) -> list[str]:
    """Return what it says about opening."""
    names = "&".join(f"run=made-{number:03}" for number in range(min(10, options.runs)))
    asked = {
        "all of the list": "",
        "the curves of a run": "/api/curves?run=made-000",
        "the curves of the same run again": "/api/curves?run=made-000",
        f"a comparison of {min(10, options.runs)} runs": f"/api/compare?{names}",
    }
    rows = []
    with serving(folder) as (pid, page):
        for what, path in asked.items():
            begin, used = time.perf_counter(), cpu_seconds(pid)
            if path:
                page.get(path)
            else:
                rows.append(f"| the first rows of the list | {page.open()[0]:.2f} | |")
            seconds, used = time.perf_counter() - begin, cpu_seconds(pid) - used
            rows.append(f"| {what} | {seconds:.2f} | {used:.2f} |")
    return [
        f"{options.runs} runs of {options.rows:,} rows of metrics, {EVALUATIONS * EPISODES:,} of evaluations:",
        "",
        "| until | seconds | of these on a processor |",
        "|---|---|---|",
        *rows,
        "",
    ]


def beside(folder: Path, options: argparse.Namespace) -> list[str]:
    """Return what it says about a training beside a page that polls."""
    run = folder / "trained"
    with serving(folder) as (pid, page), training(folder) as trainer:
        page.open()
        while not (run / "metrics.csv").exists() or frames_of(run) < 10_000:
            time.sleep(1)
        rates: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
        used = 0.0
        for number in range(2 * options.slices):
            polls = bool((number + number // 2) % 2)  # without, with, with, without
            before = cpu_seconds(pid)
            rates[polls].append(slice_of(run, trainer, options.seconds, page if polls else None))
            used += (cpu_seconds(pid) - before) * polls
    columns = [[spread([each[kind] for each in rates[polls]], "{:,.0f}") for kind in (0, 1)] for polls in (False, True)]
    ratios = [
        statistics.median(one[kind] for one in rates[True]) / statistics.median(one[kind] for one in rates[False])
        for kind in (0, 1)
    ]
    return [
        f"PPO on CartPole trains among them, {options.slices} slices of {options.seconds:.0f} s of each kind in turn:",
        "",
        "| | frames per second | frames per second of processor |",
        "|---|---|---|",
        f"| no page | {' | '.join(columns[0])} |",
        f"| a page of the run polls every {POLL_SECONDS:.0f} s | {' | '.join(columns[1])} |",
        f"| ratio of the medians | {ratios[0]:.3f} | {ratios[1]:.3f} |",
        "",
        f"The console used {used / (options.slices * options.seconds):.1%} of a core meanwhile.",
    ]


if __name__ == "__main__":
    main()
