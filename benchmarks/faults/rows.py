"""The rows of the fault table: each function applies one fault to one system and returns what happened.

Every result has `cell`, a summary in a few words, and the facts it comes from.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import (
    FAULTY_ENV,
    Ended,
    Job,
    System,
    files_of,
    flip_bit,
    fork,
    load,
    remove,
    start,
    train,
    train_afresh,
    until,
    wait,
)

KILLS, SEEDS, FLIPS = 20, 3, 60
HANG_DEADLINE = 40.0
FAULT_AT = 7000
FAULT_FRAMES = 12_288
Result = dict[str, Any]


def _job(work: Path, name: str, frames: int, **options: Any) -> Job:
    return Job(str(work / name), frames, progress=str(work / f"{name}.progress"), **options)


def _fact(ended: Ended) -> Result:
    return {"ended": ended.words, "seconds": ended.seconds, "last_line": ended.last_line}


def control(system: System, work: Path) -> Result:
    """No fault, with the env and the job of the rows with faults: the run ends well and its checkpoint loads."""
    job = _job(work, "control", FAULT_FRAMES, save_every=4096, env=FAULTY_ENV)
    ended = train(system, job)
    loaded = load(system, job)
    good = ended.code == 0 and loaded.get("frames") == FAULT_FRAMES and loaded["finite"]
    return {"cell": "runs to the end" if good else f"FAILED: {ended} {loaded}", **_fact(ended), "loaded": loaded}


def kill(system: System, work: Path) -> Result:
    """SIGKILL at a random moment of a run that saves every 64 frames."""
    draw = random.Random(1)
    newest = before = unfinished = 0
    errors: list[str] = []
    behind: list[int] = []
    for trial in range(KILLS):
        job = _job(work, f"kill{trial}", 10**6, save_every=64, batch=64, seed=trial)
        folder = Path(job.folder)
        pid, output = start(system, job)
        if not until(lambda f=folder, j=job: len(system.checkpoints(f)) > 0 and j.reached() > 128, pid):
            raise RuntimeError(f"the run to be killed did not get going: {wait(pid, output, 0)}")
        time.sleep(draw.uniform(0, 0.5))
        os.kill(pid, signal.SIGKILL)
        wait(pid, output)
        unfinished += system.unfinished(folder)
        loaded = load(system, job)
        if "error" not in loaded:
            newest += 1
            behind.append(job.reached() - loaded["frames"])
            continue
        errors.append(loaded["error"])
        if system.checkpoints(folder)[:-1]:
            remove(system.checkpoints(folder)[-1])
            before += "error" not in load(system, job)
    cell = f"latest loads {newest}/{KILLS}"
    if errors:
        cell += f"; else the one before {before}/{len(errors)}"
    cut = {"saves_seen_cut_off": unfinished, "most_frames_behind": max(behind, default=None)}
    return {"cell": cell, "trials": KILLS, "newest_loads": newest, "one_before": before, **cut, "errors": errors[:3]}


def resume(system: System, work: Path) -> Result:
    """Train n, save, new process, load, train n; against 2n. Control: 2n twice."""
    same = controls = 0
    frames: list[int] = []
    for seed in range(1, SEEDS + 1):
        weights = []
        for name in ("whole", "again"):
            job = _job(work, f"{name}{seed}", 2048, seed=seed)
            train(system, job)
            weights.append(load(system, job).get("weights"))
        job = _job(work, f"parts{seed}", 2048, seed=seed)
        first = train(system, replace(job, until=1024))
        second = train_afresh(system, replace(job, resume=True))
        loaded = load(system, job)
        if first.code or second.code or "error" in loaded:
            raise RuntimeError(f"{first} {second} {loaded}")
        frames.append(loaded["frames"])
        controls += weights[0] == weights[1] is not None
        same += loaded["weights"] == weights[0]
    cell = f"identical {same}/{SEEDS} (control {controls}/{SEEDS})"
    return {"cell": cell, "trials": SEEDS, "identical": same, "control": controls, "frames_at_the_end": frames}


def _reference(system: System, work: Path) -> tuple[Job, Result]:
    """Return a folder with one checkpoint, and what it loads to; a copy of it loads to the same."""
    job = _job(work, "reference", 1024)
    ended = train(system, job)
    folder = Path(job.folder)
    for old in system.checkpoints(folder)[:-1]:
        remove(old)
    copy = work / "copy"
    shutil.copytree(folder, copy)
    once, twice = load(system, job), load(system, replace(job, folder=str(copy)))
    shutil.rmtree(copy)
    if "error" in once or once != twice:
        raise RuntimeError(f"control failed: {ended} {once} {twice}")
    return job, once


def _judge(loaded: Result, good: Result) -> str:
    if "error" in loaded:
        return "detected"
    return "harmless" if loaded == good else "silently wrong"


def bitflip(system: System, work: Path) -> Result:
    """One random bit of the only checkpoint flipped, then loaded."""
    job, good = _reference(system, work)
    draw = random.Random(2)
    counts = {"detected": 0, "silently wrong": 0, "harmless": 0}
    silent: list[str] = []
    copy = work / "flipped"
    for _ in range(FLIPS):
        shutil.copytree(job.folder, copy)
        name = flip_bit(system.checkpoints(copy)[-1], draw)
        verdict = _judge(load(system, replace(job, folder=str(copy))), good)
        counts[verdict] += 1
        silent += [name] if verdict == "silently wrong" else []
        shutil.rmtree(copy)
    cell = ", ".join(f"{verdict} {count}" for verdict, count in counts.items() if count)
    return {"cell": f"{cell} of {FLIPS}", "trials": FLIPS, **counts, "silent_in": sorted(set(silent))}


def cut(system: System, work: Path) -> Result:
    """The biggest file of the only checkpoint, 1 KiB shorter; where several are equally big, each in turn."""
    job, good = _reference(system, work)
    sizes = [file.stat().st_size for file in files_of(system.checkpoints(Path(job.folder))[-1])]
    verdicts: list[str] = []
    copy = work / "cut"
    for index in [index for index, size in enumerate(sizes) if size == max(sizes)]:
        shutil.copytree(job.folder, copy)
        os.truncate(files_of(system.checkpoints(copy)[-1])[index], max(sizes) - 1024)
        verdicts.append(_judge(load(system, replace(job, folder=str(copy))), good))
        shutil.rmtree(copy)
    counts = {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}
    cell = ", ".join(f"{verdict} {count} of {len(verdicts)}" for verdict, count in counts.items())
    return {"cell": cell, "trials": len(verdicts), **counts}


def diskfull(system: System, work: Path) -> Result:
    """The disk, a small tmpfs, fills up during the run, so that the next checkpoint does not fit."""
    disk = work / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)], check=True, capture_output=True)
    try:
        return _fill(system, work, disk, mounted=True)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def filelimit(system: System, work: Path) -> Result:
    """From some moment on no file may grow beyond half a checkpoint, so that writing fails halfway."""
    return _fill(system, work, work, mounted=False)


def _fill(system: System, work: Path, disk: Path, mounted: bool) -> Result:
    job = replace(_job(disk, "run", 10**6, save_every=256), progress=str(work / "disk.progress"))
    folder, output = Path(job.folder), work / "disk.txt"
    pid = fork(lambda: system.train(job), output)
    if not until(lambda: len(system.checkpoints(folder)) > 1 or job.reached() > 1024, pid):
        raise RuntimeError(f"the run did not get going: {wait(pid, output, 0)}")
    os.kill(pid, signal.SIGSTOP)
    seen = job.reached()
    size = max(sum(file.stat().st_size for file in files_of(path)) for path in system.checkpoints(folder))
    if mounted:
        usage = shutil.disk_usage(disk)
        with (disk / "filler").open("wb") as stream:
            stream.write(bytes(usage.free - size // 2))
    else:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size // 2, size // 2))
    os.kill(pid, signal.SIGCONT)
    ended = wait(pid, output, 60)
    (disk / "filler").unlink(missing_ok=True)
    loaded = load(system, job)
    paths = system.checkpoints(folder)
    older: Result | None = None
    if "error" in loaded and len(paths) > 1:
        remove(paths[-1])
        older = load(system, job)
    if "error" not in loaded:
        what = f"latest checkpoint loads ({job.reached() - loaded['frames']} frames behind)"
    else:
        what = "latest does not load, " + (
            "the one before does" if older and "error" not in older else "nothing else does"
        )
    facts = {"bytes": size, "frames_when_full": seen, "frames_at_the_end": job.reached()}
    return {"cell": f"{ended.words}; {what}", "trials": 1, **facts, **_fact(ended), "loaded": loaded, "older": older}


def sigterm(system: System, work: Path) -> Result:
    """SIGTERM between two checkpoints that are 4096 frames apart."""
    job = _job(work, "sigterm", 10**6, save_every=4096)
    pid, output = start(system, job)
    if not until(lambda: job.reached() >= 6144, pid):
        raise RuntimeError(f"the run did not get going: {wait(pid, output, 0)}")
    os.kill(pid, signal.SIGTERM)
    ended = wait(pid, output, 40)
    loaded = load(system, job)
    lost = None if "error" in loaded else job.reached() - loaded["frames"]
    kept = "nothing loads" if lost is None else f"{lost} of {job.reached()} frames lost"
    cell = f"{ended.words} after {ended.seconds:.1f} s; {kept}"
    return {"cell": cell, "trials": 1, **_fact(ended), "frames_lost": lost, "reached": job.reached(), "loaded": loaded}


def _with_env_fault(system: System, work: Path, fault: str, deadline: float, **options: Any) -> tuple[Job, Ended]:
    job = _job(work, fault, FAULT_FRAMES, env=FAULTY_ENV, **options)
    return job, train(system, job, {"FAULT": fault, "FAULT_AT": str(FAULT_AT)}, deadline)


def nan(system: System, work: Path) -> Result:
    """One reward is NaN; checkpoints every 256 frames."""
    job, ended = _with_env_fault(system, work, "nan", 90, save_every=256)
    loaded = load(system, job)
    state = loaded.get("error") or ("finite" if loaded["finite"] else "NaN")
    how = "runs to the end" if ended.code == 0 else f"ends ({ended.words}) at frame {job.reached()}"
    named = (
        "" if ended.code == 0 else f", message {'names' if 'reward' in ended.last_line else 'does not name'} the reward"
    )
    cell = f"{how}{named}; latest checkpoint, frame {loaded.get('frames')}: {state}"
    return {"cell": cell, "trials": 1, **_fact(ended), "reached": job.reached(), "loaded": loaded}


def hang(system: System, work: Path) -> Result:
    """A step of the env never returns; checkpoints are 4096 frames apart. rlcore has `[run] hang_after = 5`."""
    job, ended = _with_env_fault(system, work, "hang", HANG_DEADLINE, save_every=4096, hang_after=5)
    loaded = load(system, job)
    how = f"{ended.words} after {ended.seconds:.0f} s"
    cell = f"{how}; checkpoint at frame {loaded.get('frames')} of {job.reached()}"
    return {"cell": cell, "trials": 1, **_fact(ended), "reached": job.reached(), "loaded": loaded}


def envraise(system: System, work: Path) -> Result:
    """The env raises; checkpoints are 4096 frames apart; then the run is resumed without the fault."""
    job, ended = _with_env_fault(system, work, "raise", 90, save_every=4096)
    loaded, reached = load(system, job), job.reached()
    again = train_afresh(system, replace(job, resume=True))
    final = load(system, job)
    resumes = again.code == 0 and final.get("frames") == FAULT_FRAMES
    outcome = "resumes and ends" if resumes else f"does not resume: {again.last_line}"
    cell = f"{ended.words}; {outcome} from frame {loaded.get('frames')} of {reached}"
    return {"cell": cell, "trials": 1, **_fact(ended), "loaded": loaded, "resumed": _fact(again), "final": final}


def logger(system: System, work: Path) -> Result:
    """A logger raises from frame 768 on; checkpoints every 512 frames."""
    job = _job(work, "logger", 4096, raising_logger=True)
    ended = train(system, job)
    loaded = load(system, job)
    at = "none" if "error" in loaded else f"at frame {loaded['frames']}"
    how = "runs to the end" if ended.code == 0 else f"ends ({ended.words}) at frame {job.reached()}"
    facts = {"reached": job.reached(), "loaded": loaded}
    return {"cell": f"{how}; checkpoint: {at}", "trials": 1, **_fact(ended), **facts}


ROWS: Mapping[str, Callable[[System, Path], Result]] = {
    row.__name__: row
    for row in (control, kill, resume, bitflip, cut, diskfull, filelimit, sigterm, nan, hang, logger, envraise)
}


def main(systems: Sequence[System]) -> None:
    """Run rows of one system and print a JSON line for each; or, with `--job`, one training run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--system", choices=[system.name for system in systems], default=systems[0].name)
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--job", help=argparse.SUPPRESS)
    args = parser.parse_args()
    system = next(system for system in systems if system.name == args.system)
    versions = system.versions()
    if args.job:
        sys.exit(system.train(Job(**json.loads(args.job))))
    print(json.dumps({"system": system.name, "versions": versions}), flush=True)
    for name in args.rows:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as temporary:
            try:
                result = ROWS[name](system, Path(temporary))
            except Exception as error:
                result = {"cell": f"not measured: {type(error).__name__}", "problem": str(error)}
        seconds = round(time.monotonic() - began, 1)
        print(json.dumps({"system": system.name, "row": name, **result, "took_s": seconds}), flush=True)
