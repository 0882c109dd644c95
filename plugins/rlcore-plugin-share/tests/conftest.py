"""What the tests share: a finished run, the command line in this process, and a hub on loopback."""

import runpy
import shutil
import threading
from pathlib import Path

import pytest
import tomli_w

from rlcore.cli.command_line import main
from tests.conftest import TINY, _plain_environment, cli, workdir

__all__ = ["_plain_environment", "cli", "workdir"]


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The folder of a run with two checkpoints, evaluated and logged."""
    folder = tmp_path_factory.mktemp("finished")
    sections = {
        **TINY,
        "run": {**TINY["run"], "folder": str(folder)},
        "logger": [{"use": "csv"}],
        "evaluator": {"use": "episodes", "every": 32, "episodes": 2},
    }
    (folder / "tiny.toml").write_text(tomli_w.dumps(sections))
    assert main(["train", str(folder / "tiny.toml"), "--quiet"]) == 0
    return folder / "tiny"


@pytest.fixture
def source(finished, tmp_path):
    """A copy of it that a test may change."""
    return shutil.copytree(finished, tmp_path / "runs" / "tiny")


@pytest.fixture
def hub():
    server = runpy.run_path(str(Path(__file__).with_name("hub_server.py")))["HubServer"]()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def content(folder):
    """Path to bytes of the files of a folder that are not hidden."""
    files = [path for path in Path(folder).rglob("*") if path.is_file() and not path.name.startswith(".")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(name="content")
def _content():
    return content
