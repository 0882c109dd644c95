"""What the fault scripts share: the description of a run, processes with deadlines, and comparing states.

Runs and loads happen in processes forked from one that has only imported the library; the runs that continue another
one are started afresh. Nothing waits without a deadline.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

FAULTY_ENV = "faulty_env:Faulty-v0"
DEADLINE = 90.0
LOGGER_FAILS = 768


@dataclass(frozen=True)
class Job:
    """One run of PPO with one env, two hidden layers of 256, Adam.

    Attributes:
        folder: where the library writes; made by the run.
        frames: length of the run.
        save_every: frames between two checkpoints.
        until: stop here and save, as if it were the end; 0: at `frames`.
        resume: continue from the latest checkpoint in the folder.
        progress: file for the frames reached, written after each iteration.
        raising_logger: use a logger that raises from frame `LOGGER_FAILS` on.
        hang_after: rlcore's `[run] hang_after`; the peers have none.
    """

    folder: str
    frames: int
    save_every: int = 512
    seed: int = 1
    env: str = "CartPole-v1"
    batch: int = 256
    epochs: int = 1
    until: int = 0
    resume: bool = False
    progress: str = ""
    raising_logger: bool = False
    hang_after: int = 60

    minibatch = 64
    hidden = (256, 256)
    learning_rate = 3e-4

    @property
    def end(self) -> int:
        """Where the run stops."""
        return self.until or self.frames

    def note(self, frames: int) -> None:
        """Say how far the run is."""
        if self.progress:
            temporary = Path(f"{self.progress}.new")
            temporary.write_text(str(frames))
            temporary.replace(self.progress)

    def reached(self) -> int:
        """Return how far the run is."""
        path = Path(self.progress)
        return int(path.read_text()) if path.exists() else 0


class System(Protocol):
    """One library, used as its documentation says."""

    name: str
    script: str

    def versions(self) -> dict[str, str]:
        """Return the versions that matter; imports everything that runs need."""

    def train(self, job: Job) -> int:
        """Train in this process and return the exit code; may raise."""

    def checkpoints(self, folder: Path) -> list[Path]:
        """Return the checkpoints that a user would see, oldest first."""

    def load(self, job: Job) -> dict[str, Any]:
        """Load what a user who continues the job would load; return `describe` of it."""

    def unfinished(self, folder: Path) -> bool:
        """Return whether a save was cut off, as far as files tell."""


def describe(frames: int, weights: Any, everything: Any) -> dict[str, Any]:
    """Describe a loaded state: frames, fingerprints, and whether the weights are finite."""
    import torch

    finite = all(bool(torch.isfinite(leaf).all()) for leaf in leaves(weights) if isinstance(leaf, torch.Tensor))
    return {
        "frames": frames,
        "weights": fingerprint(weights),
        "state": fingerprint(everything),
        "finite": finite,
    }


def leaves(tree: Any) -> Iterator[Any]:
    """Yield keys and leaves, mappings sorted by key."""
    if isinstance(tree, Mapping):
        for key in sorted(tree, key=str):
            yield str(key)
            yield from leaves(tree[key])
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from leaves(value)
    else:
        yield tree


def fingerprint(tree: Any) -> str:
    """Return a hash of all bits of a state."""
    import numpy as np
    import torch

    digest = hashlib.sha256()
    for leaf in leaves(tree):
        if isinstance(leaf, torch.Tensor):
            leaf = leaf.detach().cpu().numpy()
        if isinstance(leaf, np.ndarray):
            digest.update(f"{leaf.dtype}{leaf.shape}".encode() + np.ascontiguousarray(leaf).tobytes())
        elif isinstance(leaf, float):
            digest.update(struct.pack("d", leaf))
        else:
            digest.update(repr(leaf).encode())
        digest.update(b"|")
    return digest.hexdigest()


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        code: exit code, minus the signal, or None when the deadline passed and it was killed.
        seconds: how long that took.
        last_line: of what it printed.
    """

    code: int | None
    seconds: float
    last_line: str

    @property
    def words(self) -> str:
        """Say it in short."""
        if self.code is None:
            return "still running"
        if self.code < 0:
            return f"killed by {signal.Signals(-self.code).name}"
        return f"exit {self.code}"


def fork(call: Callable[[], int], output: Path, environment: Mapping[str, str] | None = None) -> int:
    """Run a call in a forked process, its output in a file; return the process id."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.environ.update(environment or {})
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        code = call()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def wait(pid: int, output: Path, deadline: float = DEADLINE) -> Ended:
    """Wait for a process; kill it when the deadline passes."""
    began = time.monotonic()
    code: int | None = None
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            break
        if time.monotonic() - began > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            break
        time.sleep(0.002)
    seconds = time.monotonic() - began
    text = output.read_text(errors="replace") if output.exists() else ""
    return Ended(code, round(seconds, 2), last_line(text))


def last_line(text: str) -> str:
    """Return the last error and what follows it, or else the last line that is not noise; paths without folders."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if "[INFO]" not in line and "resource_tracker" not in line]
    errors = [index for index, line in enumerate(lines) if re.match(r"(error:|[\w.]*(Error|Exception)\b)", line)]
    return without_folders(" ".join(lines[errors[-1] :] if errors else lines[-1:]))[:400]


def without_folders(text: str) -> str:
    """Shorten every absolute path to its last part: the folders are of this machine and of this run."""
    return re.sub(r"/(?:[\w.-]+/)+", "", text)


def start(system: System, job: Job, environment: Mapping[str, str] | None = None) -> tuple[int, Path]:
    """Start a run in a forked process; return its id and the file with its output."""
    output = Path(f"{job.folder}.{'resumed' if job.resume else 'output'}.txt")
    return fork(lambda: system.train(job), output, environment), output


def train(system: System, job: Job, environment: Mapping[str, str] | None = None, deadline: float = DEADLINE) -> Ended:
    """Run a job to its end in a forked process."""
    pid, output = start(system, job, environment)
    return wait(pid, output, deadline)


def train_afresh(system: System, job: Job) -> Ended:
    """Run a job in a new process."""
    command = [sys.executable, system.script, "--system", system.name, "--job", json.dumps(dataclasses.asdict(job))]
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        return Ended(None, DEADLINE, "")
    return Ended(done.returncode, round(time.monotonic() - began, 2), last_line(done.stdout + done.stderr))


def load(system: System, job: Job) -> dict[str, Any]:
    """Load the latest checkpoint in a forked process; `error` in the result says why that failed."""
    with tempfile.TemporaryDirectory() as temporary:
        answer, output = Path(temporary) / "answer.json", Path(temporary) / "output.txt"

        def call() -> int:
            answer.write_text(json.dumps(system.load(job)))
            return 0

        ended = wait(fork(call, output), output, 60)
        if ended.code == 0:
            loaded: dict[str, Any] = json.loads(answer.read_text())
            return loaded
        return {"error": f"{ended.words}: {ended.last_line}"}


def until(condition: Callable[[], bool], pid: int, deadline: float = DEADLINE) -> bool:
    """Wait until a condition holds while a process runs; False when it ended or the deadline passed."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > deadline or not Path(f"/proc/{pid}/stat").exists() or _is_zombie(pid):
            return False
        time.sleep(0.002)
    return True


def _is_zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def files_of(checkpoint: Path) -> list[Path]:
    """Return the files of a checkpoint, which is a file or a folder."""
    return [checkpoint] if checkpoint.is_file() else sorted(path for path in checkpoint.rglob("*") if path.is_file())


def remove(checkpoint: Path) -> None:
    """Remove a checkpoint."""
    if checkpoint.is_dir():
        shutil.rmtree(checkpoint)
    else:
        checkpoint.unlink()


def flip_bit(checkpoint: Path, draw: random.Random) -> str:
    """Flip one bit at a place drawn from all bytes of a checkpoint; return the file it was in."""
    files = files_of(checkpoint)
    place = draw.randrange(sum(file.stat().st_size for file in files))
    for file in files:
        if place < file.stat().st_size:
            content = bytearray(file.read_bytes())
            content[place] ^= 1 << draw.randrange(8)
            file.write_bytes(content)
            return file.name
        place -= file.stat().st_size
    raise AssertionError("a place in no file")
