"""What the tests of benchmarks share: a bench file of the small run of toy parts, in an empty working directory."""

import pytest
import tomli_w
from rlcore_plugin_testing.small_run import TOY_CONFIG

from rlcore.cli.command_line import main

# writes what it was asked for, after as many seconds
PEER = """
import json, sys, time
seed, seconds = int(sys.argv[1]), float(sys.argv[2])
time.sleep(seconds)
curve = {"at": [10, 20], "return": [1.0, 2.0 + seed], "seconds": [0.5, 1.0]}
print("no JSON")
print(json.dumps({"mean": 2.0 + seed, "train_s": 1.0, "frames": 20, "curve": curve, "length": 7}))
"""
TASK = {"method": {"ours": {"config": "toy.toml"}, "peer": {"command": ["peer.py", "{seed}", "0"]}}}


@pytest.fixture
def write_bench(tmp_path, monkeypatch, caplog):
    """Write a config, the script of a peer, and a bench file with these tasks."""
    caplog.set_level("INFO")
    monkeypatch.chdir(tmp_path)
    config = {**TOY_CONFIG, "checkpoint": {"use": "torch", "every": 32}}
    (tmp_path / "toy.toml").write_text(tomli_w.dumps(config))
    (tmp_path / "peer.py").write_text(PEER)

    def write(name="small", bench=None, **tasks):
        values = {"bench": {"seeds": [1, 2], **(bench or {})}, "task": tasks or {"toy": TASK}}
        path = tmp_path / f"{name}.toml"
        path.write_text(tomli_w.dumps(values))
        return path

    return write


@pytest.fixture
def refused(capsys):
    """Run a command line that must be refused before anything is written; return what it says."""

    def run(*arguments):
        assert main([str(argument) for argument in arguments]) == 2
        return capsys.readouterr().err

    return run
