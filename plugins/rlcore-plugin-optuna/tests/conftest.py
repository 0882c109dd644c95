"""What the tests of sweeps share: a study of the small run of toy parts, in an empty working directory."""

import pytest
import tomli_w
from rlcore_plugin_testing.small_run import TOY_CONFIG

from rlcore.cli.command_line import main

SPACE = {"optimizer.lr": {"low": 1e-3, "high": 1e-1, "log": True}, "buffer.epochs": {"low": 1, "high": 3}}


@pytest.fixture
def write_study(tmp_path, monkeypatch, caplog):
    """Write a base config and a study file; each section of the study file can be changed or added."""
    caplog.set_level("INFO")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.toml").write_text(tomli_w.dumps({**TOY_CONFIG, "checkpoint": {"use": "torch", "every": 32}}))

    def write(base="toy.toml", **sections):
        study = {"config": base, "trials": 2, **sections.pop("study", {})}
        values = {"study": study, "space": sections.pop("space", SPACE), **sections}
        (tmp_path / "search.toml").write_text(tomli_w.dumps(values))
        return tmp_path / "search.toml"

    return write


@pytest.fixture
def refused(capsys):
    """Run a command line that must be refused before anything is written; return what it says."""

    def run(*arguments):
        assert main([str(argument) for argument in arguments]) == 2
        return capsys.readouterr().err

    return run
