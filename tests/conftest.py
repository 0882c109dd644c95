"""What the tests share: a tiny run, the command line in this process, and a folder of fake distributions."""

from __future__ import annotations

import copy
import importlib
import os
import signal
import sys
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from rlcore_plugin_testing.faults.killer import Launcher, Process

import rlcore
from rlcore.cli import command_line as command_line

TINY: dict[str, Any] = {
    "run": {"name": "tiny", "seed": 1, "total_frames": 96, "device": "cpu"},
    "env": {"use": "gymnasium", "id": "CartPole-v1"},
    "model": {"use": "mlp", "hidden": [8]},
    "loss": {"use": "ppo"},
    "estimator": {"use": "gae"},
    "optimizer": [{"use": "adam"}],
    "collector": {"frames_per_batch": 32},
    "buffer": {"epochs": 2, "minibatch_size": 16},
    "metrics": {"every": 32},
    "checkpoint": {"every": 32},
}


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch):
    """Variables of the caller's shell that change what a config means."""
    for name in ("CKPT_BACKEND", "RLCORE_NO_PLUGINS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def workdir(tmp_path, monkeypatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write_config(workdir) -> Callable[..., Path]:
    """Write a config: the tiny run with sections changed (a dict is merged, None removes, anything else replaces)."""

    def write(name: str = "config.toml", **sections: Any) -> Path:
        values = copy.deepcopy(TINY)
        for section, change in sections.items():
            if change is None:
                values.pop(section, None)
            elif isinstance(change, dict) and isinstance(values.get(section), dict):
                values[section] |= change
            else:
                values[section] = change
        path = workdir / name
        path.write_text(tomli_w.dumps(values))
        return path

    return write


@pytest.fixture
def build(write_config) -> Callable[..., Any]:
    """Build the tiny run with hook instances; it writes nothing unless asked."""

    def make(hooks: Iterable[Any] = (), *, write: bool = False, resume: bool = False, **sections: Any) -> Any:
        config = rlcore.load_config(write_config(**sections))
        return rlcore.build(config, write=write, resume=resume, hooks=hooks)

    return make


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def cli(workdir, capsys, caplog) -> Callable[..., Outcome]:
    """Run a command line in this process."""

    def run(*arguments: Any) -> Outcome:
        caplog.clear()
        capsys.readouterr()
        try:
            code = command_line.main([str(argument) for argument in arguments])
        except SystemExit as stop:  # argparse
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err + caplog.text)

    return run


class Forked:
    """A process that was forked instead of started, with what the tests use of `subprocess.Popen`."""

    def __init__(self, process: Process) -> None:
        self._process, self.pid = process, process.pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self.wait(0)

    def wait(self, timeout: float) -> int | None:
        self.returncode = self._process.wait(timeout)
        return self.returncode

    def send_signal(self, number: int) -> None:
        self._process.send(number)

    def kill(self) -> None:
        self._process.send(signal.SIGKILL)

    def communicate(self, timeout: float = 60) -> tuple[str, str]:
        """Wait for its end; return what it printed, and what as errors."""
        assert self.wait(timeout) is not None, f"it did not end within {timeout:g} s"
        return self._process.text(), self._process.errors.read_text(errors="replace")


# what the runs have that tests fork: the modules that each needs are imported once
_LEARNT: tuple[dict[str, Any], ...] = (
    {"evaluator": {"use": "episodes"}, "logger": [{"use": "csv"}], "hook": [{"use": "testing:toy"}]},
    {"optimizer": [{"use": "sgd", "momentum": 0.9}], "checkpoint": {"use": "dcp"}},
    {"checkpoint": {"use": "torchsnapshot"}},
)


@pytest.fixture(scope="session")
def launcher(tmp_path_factory):
    """One process that forks all others: an interpreter starts, and imports what a run needs, once."""
    folder = tmp_path_factory.mktemp("launcher")
    with Launcher(folder, folder / "output") as launcher:
        for number, sections in enumerate(_LEARNT):
            run = {**TINY["run"], "name": f"tiny-{number}"}
            (folder / "tiny.toml").write_text(tomli_w.dumps({**TINY, **sections, "run": run}))
            learnt = launcher.learn(["train", "tiny.toml", "--quiet"])
            assert learnt.wait(0) == 0, learnt.text()
        yield launcher


@pytest.fixture
def forked(launcher, workdir) -> Callable[..., Forked]:
    """Begin a command line in a process of its own, which does not outlive the test; one at a time.

    It is `python -m rlcore` but for the start and the end of its interpreter: nothing that is left over at its end is
    waited for.
    """
    begun: list[Forked] = []

    def begin(*arguments: Any, **environment: str) -> Forked:
        words, variables = [str(argument) for argument in arguments], {**os.environ, **environment}
        process = launcher.start(words, directory=Path.cwd(), environment=variables, errors_apart=True)
        begun.append(Forked(process))
        return begun[-1]

    yield begin
    for process in begun:
        process.kill()
        process.wait(60)


@pytest.fixture
def forked_cli(forked) -> Callable[..., Outcome]:
    """Run a command line in a process of its own; see `forked`."""

    def run(*arguments: Any, seconds: float = 90) -> Outcome:
        process = forked(*arguments)
        out, err = process.communicate(seconds)
        return Outcome(process.returncode, out, err)

    return run


class Site:
    """A folder on `sys.path` for distributions that exist only in a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(
        self,
        name: str,
        module: str,
        source: str,
        *,
        version: str = "1.0",
        requires: Iterable[str] = ("rlcore>=0.1,<1",),
        entry_point: str | None = None,
        group: str = "rlcore",
        attribute: str = "",
        summary: str = "",
    ) -> None:
        """Install a distribution with one module and one entry point, for the module or an attribute of it."""
        (self.folder / f"{module}.py").write_text(textwrap.dedent(source))
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {requirement}" for requirement in requires]
        lines += [f"Summary: {summary}"] if summary else []
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("\n".join(lines) + "\n")
        short = entry_point or name.removeprefix("rlcore-plugin-")
        (info / "entry_points.txt").write_text(f"[{group}]\n{short} = {module}{attribute and f':{attribute}'}\n")
        importlib.invalidate_caches()


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Make a `Site`; its modules are forgotten at the end."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield Site(folder)
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "") or "").startswith(str(folder)):
            del sys.modules[name]
