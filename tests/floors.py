"""Trains, stops and resumes with the lowest versions that the packages declare, or with the latest ones.

`make test-floors` makes a virtual environment in `.venv-floors` for it. torch brings some gigabytes of CUDA with it;
with `--keep torch tensordict` their versions are those of the environment that runs this.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
SOURCES = [ROOT, *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]
# what only developers install
DEVELOPMENT = {"parity", "test"}
# what the environments of the examples need
EXTRAS = {"rlcore-plugin-gymnasium": "[classic-control,mujoco]"}

# whose libraries are large, and not needed to import it
ALONE = {"rlcore-plugin-envpool", "rlcore-plugin-jax"}

IMPORT_ALL = """
from rlcore.plugins.component import KINDS
from rlcore.plugins.discovery import installed
from rlcore.plugins.host import PluginHost

for plugin in installed():
    host = PluginHost()
    host.load(plugin.name)
    for kind in KINDS:
        for provided in host.registry.of_kind(kind):
            assert callable(provided.target) and provided.schema
"""
SHORT = {
    "run.total_frames": "4_000",
    "evaluator.every": "2_000",
    "evaluator.episodes": "1",
    "metrics.every": "1_000",
    "checkpoint.every": "1_000",
}
# example, its back end of checkpoints, and what else it says
RUNS = [
    ("ppo-cartpole", "torch", ["collector.use=parallel:workers", "collector.num_workers=2"]),
    ("ppo-idp", "dcp", ["buffer.epochs=1"]),
    ("dqn-cartpole", "torch", []),
]


def requirements():
    """Return what the distributions of this repository need of others, their extras included."""
    found = []
    for source in SOURCES:
        project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
        extras = project.get("optional-dependencies", {})
        lists = [project["dependencies"], *(extras[name] for name in extras if name not in DEVELOPMENT)]
        found += [Requirement(line) for lines in lists for line in lines]
    return [requirement for requirement in found if not requirement.name.startswith("rlcore")]


def lowest():
    """Return the lowest version of each package with which all of its declared ranges are satisfied."""
    floors: dict[str, Version] = {}
    for requirement in requirements():
        name = canonicalize_name(requirement.name)
        for clause in requirement.specifier:
            if clause.operator in (">=", "=="):
                floors[name] = max(Version(clause.version), floors.get(name, Version("0")))
    return {name: str(floor) for name, floor in floors.items()}


def command(*words, cwd=None):
    """Run a program, and end with its output when it fails."""
    print("$", *words, flush=True)
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def install(venv, pins):
    """Make the environment over again, with the pinned versions and the packages of this repository."""
    shutil.rmtree(venv, ignore_errors=True)
    command(sys.executable, "-m", "venv", venv)
    python = venv / "bin" / "python"
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write("".join(f"{name}=={pin}\n" for name, pin in pins.items()))
        constraints.flush()
        alone = {source for source in SOURCES if source.name in ALONE}
        sources = [f"{source}{EXTRAS.get(source.name, '')}" for source in SOURCES if source not in alone]
        editable = [word for source in sources for word in ("-e", source)]
        command(python, "-m", "pip", "install", "-q", "-c", constraints.name, *editable)
        words = [word for source in alone for word in ("-e", source)]
        command(python, "-m", "pip", "install", "-q", "--no-deps", *words)
    return python


def digests(python, example, backend, keys, folder, *stops):
    """Train an example, stopped and resumed at `stops`; return the digests of what its last checkpoint holds."""
    settings = {**SHORT, "run.name": example, "checkpoint.use": backend}
    words = [f"{name}={value}" for name, value in settings.items()] + keys
    train = [python.with_name("rlcore"), "train", ROOT / "examples" / f"{example}.toml", "--quiet"]
    train += [word for setting in words for word in ("--set", setting)]
    for number, stop in enumerate([*stops, None]):
        until = [] if stop is None else ["--until", stop]
        command(*train, *until, *(["--resume"] if number else []), cwd=folder)
    checkpoints = folder / "runs" / example / "checkpoints"
    latest = max(path for path in checkpoints.iterdir() if path.name[0].isdigit())
    return json.loads((latest / "manifest.json").read_text())["digest"]


def main():
    """Install and train; end with an error when something fails, or a resumed run is another one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latest", action="store_true", help="the latest versions, not the lowest")
    parser.add_argument("--keep", nargs="*", default=[], metavar="PACKAGE", help="take the version installed here")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv-floors", help="default: .venv-floors")
    options = parser.parse_args()
    kept = {name: version(name).partition("+")[0] for name in options.keep}
    python = install(options.venv.absolute(), kept if options.latest else {**lowest(), **kept})
    print(command(python, "-m", "pip", "list", "--format=freeze", "--exclude-editable"))
    command(python, "-c", IMPORT_ALL)
    for example, backend, keys in RUNS:
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            whole = digests(python, example, backend, keys, Path(first))
            resumed = digests(python, example, backend, keys, Path(second), 2_000)
        if resumed != whole:
            raise SystemExit(f"{example}: the resumed run has digest {resumed}, the whole one {whole}")
    print(f"{len(RUNS)} runs trained, stopped and resumed to the bit")


if __name__ == "__main__":
    main()
