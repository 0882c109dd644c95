"""A new virtual environment with the third-party packages of this one, and without the checkout.

Packages are linked, not copied or downloaded. Wheels are built from copies, so that nothing is written into the
checkout.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = ("rlcore", "__editable__", "__pycache__", "pip")
WHAT_IS_BUILT = ("build", "dist", "*.egg-info", "__pycache__", "runs")
# the variable that names a folder of what is built once for all processes of the tests
SHARED = "RLCORE_TEST_SHARED"


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


@contextmanager
def shared_folder(folder):
    """Yield the folder that the processes of the tests share, alone in it; `folder` where they share none."""
    place = Path(os.environ.get(SHARED, folder))
    place.mkdir(parents=True, exist_ok=True)
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place


def build_wheels(sources, folder):
    """Put a wheel of every source into `folder / "dist"`, which is returned; each is built once by all tests."""
    copies, dist = folder / "sources", folder / "dist"
    for made in (copies, dist):
        made.mkdir(parents=True)
    names = {source: "rlcore" if source == ROOT else source.name.replace("-", "_") for source in sources}
    with shared_folder(folder / "shared") as place:
        wheels = place / "wheels"
        absent = [copied(source, copies) for source in sources if not list(wheels.glob(f"{names[source]}-*.whl"))]
        if absent:
            wheels.mkdir(exist_ok=True)
            _checked([sys.executable, __file__, wheels, *absent])
    for name in names.values():
        (wheel,) = wheels.glob(f"{name}-*.whl")
        shutil.copy(wheel, dist)
    return dist


def pip(command, *arguments, python=sys.executable):
    """Run pip for the interpreter `python`, without dependencies and without an index."""
    _checked([sys.executable, "-m", "pip", "--python", python, command, "-q", "--no-deps", "--no-index", *arguments])


def _checked(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr


def call_build_hooks(folder, *sources):
    """Put a wheel of every source into a folder by its build hook (PEP 517), as pip does.

    Each is built in a fork of one process, which has imported setuptools; pip would start three for each.
    """
    from setuptools import build_meta

    for source in sources:
        child = os.fork()
        if child == 0:
            os.chdir(source)
            build_meta.build_wheel(folder)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, f"{source} cannot be built"


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
        (self.site,) = folder.glob("lib/python*/site-packages")
        for source in {sysconfig.get_paths()[name] for name in ("purelib", "platlib")}:
            for entry in Path(source).iterdir():
                if not entry.name.startswith((*LEFT_OUT, *without)) and entry.suffix != ".pth":
                    (self.site / entry.name).symlink_to(entry)

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


if __name__ == "__main__":
    call_build_hooks(*sys.argv[1:])
