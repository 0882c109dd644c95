"""The script of the page on clusters, with stand-ins for the commands of Slurm: warned, stopped, continued."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tomli_w
from rlcore_plugin_testing.small_run import TOY_CONFIG

ROOT = Path(__file__).resolve().parents[2]
PAUSE = """
import time
from rlcore import Component, hookimpl

class Pause:
    observer = True
    def __init__(self, config, context): ...

    @hookimpl
    def post_steps(self):
        time.sleep(0.05)

@hookimpl
def provide_components():
    return [Component("hook", "pause", Pause)]
"""


def executable(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o755)


@pytest.fixture
def node(tmp_path):
    """A folder with the script and a config, and the environment of a task of an array job."""
    page = (ROOT / "docs/howto/clusters.md").read_text()
    script = re.search(r"^```bash file=train.sbatch\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert script is not None
    (tmp_path / "train.sbatch").write_text(script[1])
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/activate").touch()
    (tmp_path / "pause.py").write_text(PAUSE)
    config = TOY_CONFIG | {"plugins": {"files": ["pause.py"]}, "hook": [{"use": "pause"}]}
    config["run"] = config["run"] | {"total_frames": 640}
    (tmp_path / "cartpole.toml").write_text(tomli_w.dumps(config))

    commands = tmp_path / "commands"
    commands.mkdir()
    executable(commands / "srun", '#!/bin/bash\necho $$ > srun.pid\nexec "$@"\n')
    executable(commands / "scontrol", '#!/bin/bash\necho "$@" >> scontrol.log\n')
    executable(commands / "rlcore", f'#!/bin/bash\nexec {sys.executable} -m rlcore "$@"\n')
    task = {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_JOB_ID": "77", "OMP_NUM_THREADS": "1"}
    return tmp_path, os.environ | task | {"PATH": f"{commands}:{os.environ['PATH']}"}


def job(node) -> subprocess.Popen[str]:
    folder, environment = node
    return subprocess.Popen(
        ["bash", "train.sbatch"], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def status(folder: Path) -> dict[str, object]:
    return json.loads((folder / "runs/cartpole-3/status.json").read_text())


@pytest.mark.slow
def test_the_script_puts_a_stopped_job_back_and_continues_its_run(node):
    folder, _ = node
    first = job(node)
    deadline = time.monotonic() + 120
    while not (folder / "runs/cartpole-3/checkpoints/latest").exists():
        assert first.poll() is None, first.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(int((folder / "srun.pid").read_text()), signal.SIGUSR1)
    _, errors = first.communicate(timeout=60)
    assert first.returncode == 138, errors
    assert (status(folder)["state"], status(folder)["reason"]) == ("stopped-resumable", "SIGUSR1")
    assert (folder / "scontrol.log").read_text() == "requeue 77_3\n"

    second = job(node)
    _, errors = second.communicate(timeout=120)
    assert second.returncode == 0, errors
    assert (status(folder)["state"], status(folder)["frames"]) == ("done", 640)
    assert "seed = 3" in (folder / "runs/cartpole-3/config.toml").read_text()
    assert (folder / "scontrol.log").read_text() == "requeue 77_3\n", "a run that is done stays out of the queue"

    third = job(node)
    _, errors = third.communicate(timeout=120)
    assert third.returncode == 0, errors
