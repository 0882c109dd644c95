"""A new virtual environment with the third-party packages of this one, and without the checkout.

Packages are linked, not copied or downloaded. Wheels are built from copies, so that nothing is written into the
checkout.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = ("rlcore", "__editable__", "__pycache__", "pip")
WHAT_IS_BUILT = ("build", "dist", "*.egg-info", "__pycache__", "runs")


def copied(source, folder):
    """Copy the source of a distribution; of the core only what its wheel is made of."""
    target = folder / (source.name if source != ROOT else "core")
    ignore = shutil.ignore_patterns(*WHAT_IS_BUILT)
    if source != ROOT:
        shutil.copytree(source, target, ignore=ignore)
        return target
    shutil.copytree(source / "rlcore", target / "rlcore", ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(source / name, target)
    return target


def build_wheels(sources, folder):
    """Build a wheel of every source into `folder / "dist"`, which is returned."""
    copies = folder / "sources"
    copies.mkdir(parents=True)
    pip(
        "wheel", "--no-build-isolation", "--wheel-dir", folder / "dist", *(copied(source, copies) for source in sources)
    )
    return folder / "dist"


def pip(command, *arguments, python=sys.executable):
    """Run pip for the interpreter `python`, without dependencies and without an index."""
    words = [sys.executable, "-m", "pip", "--python", python, command, "-q", "--no-deps", "--no-index", *arguments]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr


def environment():
    """Return the environment of a shell in which nothing points at the checkout."""
    unset = ("PYTHONPATH", "RLCORE_NO_PLUGINS", "CKPT_BACKEND", "PYTEST_ADDOPTS")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "OMP_NUM_THREADS": "1"}


class FreshVenv:
    """A virtual environment in which `install` puts wheels, and `run` runs programs.

    Args:
        folder: where to make it.
        without: beginnings of the names of packages that it must not have.
    """

    def __init__(self, folder, without=()):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        self.bin = folder / "bin"
        (site,) = folder.glob("lib/python*/site-packages")
        for source in {sysconfig.get_paths()[name] for name in ("purelib", "platlib")}:
            for entry in Path(source).iterdir():
                if not entry.name.startswith((*LEFT_OUT, *without)) and entry.suffix != ".pth":
                    (site / entry.name).symlink_to(entry)

    def install(self, *arguments):
        """Install what pip finds by these arguments."""
        pip("install", *arguments, python=self.bin / "python")

    def command(self, program, *arguments):
        """Return the words of a command line."""
        return [str(self.bin / program), *(str(argument) for argument in arguments)]

    def run(self, program, *arguments, cwd, code=0):
        """Run a program of the environment and return its output; the exit code must be `code`."""
        done = subprocess.run(
            self.command(program, *arguments), cwd=cwd, env=environment(), capture_output=True, text=True
        )
        assert done.returncode == code, (
            f"{program} {arguments} ended with {done.returncode}\n{done.stdout}{done.stderr}"
        )
        return done.stdout

    def kill_once_saved(self, run, *arguments, cwd):
        """Run `rlcore train` until `run`, its folder, has a checkpoint behind frame 0, and kill it."""
        command = self.command("rlcore", "train", *arguments)
        process = subprocess.Popen(command, cwd=cwd, env=environment())
        limit = time.monotonic() + 120
        try:
            while not any(int(path.parent.name[:12]) for path in run.glob("checkpoints/[0-9]*/manifest.json")):
                assert process.poll() is None, "the run ended before it was killed"
                assert time.monotonic() < limit, "it did not save"
                time.sleep(0.02)
        finally:
            process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
