"""`rlcore train` of a config with `[ranks]`: the run is handed over to the launcher that it names, or refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

MINE = """
from pydantic import BaseModel
from rlcore import Component, hookimpl

class TellsNothing:
    class Config(BaseModel, extra="forbid"):
        pass

    def open(self, count, generation, deadline):
        pass

    def join(self, rank):
        pass

class Tells(TellsNothing):
    @classmethod
    def train(cls, asked):
        print(asked.place.name, asked.clock, asked.until, asked.quiet, asked.grace, asked.ranks.count, asked.resume)
        return 7

@hookimpl
def provide_components():
    return [Component("launcher", "tells", Tells), Component("launcher", "tells-nothing", TellsNothing)]
"""


def test_a_run_is_handed_over_with_what_the_command_asks(cli, write_config, site):
    site.add("rlcore-plugin-mine", "mine_launchers", MINE)
    asked = ("--set", "ranks.use=mine:tells", "--set", "ranks.count=4", "--until", "32", "--quiet", "--grace", "3")
    outcome = cli("train", write_config(), *asked)
    assert (outcome.code, outcome.out) == (7, "tiny frames 32 True 3.0 4 None\n")


def test_a_launcher_that_trains_nothing_is_told_what_to_derive_from(cli, write_config, site):
    site.add("rlcore-plugin-mine", "mine_launchers", MINE)
    outcome = cli("train", write_config(), "--set", "ranks.use=mine:tells-nothing")
    assert outcome.code == 2
    assert "trains nothing, as it has no train; derive it from rlcore_plugin_ddp.launchers" in outcome.err


def test_without_the_plugin_of_ranks_the_config_says_what_to_install(cli, write_config, monkeypatch):
    monkeypatch.setenv("RLCORE_NO_PLUGINS", "1")
    outcome = cli("train", write_config(), "--set", "ranks.count=2")
    assert outcome.code == 2
    assert "[ranks] use: 'ddp' is provided by rlcore-plugin-ddp, which is not installed" in outcome.err


def test_one_process_imports_nothing_of_ranks(write_config):
    code = (
        "import sys\nfrom rlcore.cli.command_line import main\n"
        "assert main(['train', sys.argv[1], '--quiet', '--until', '32']) == 0\n"
        "print([name for name in sys.modules if name.startswith('rlcore_plugin_ddp')])"
    )
    done = subprocess.run([sys.executable, "-c", code, write_config()], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("overrides", "size", "says"),
    [
        (["--set", "ranks.use=torchrun"], None, "torchrun --nproc-per-node N -m rlcore train CONFIG"),
        (["--set", "ranks.count=2"], "4", "[ranks] count = 2, and 4 ranks were started"),
        ([], "2", "torchrun started 2 processes, and the config has no [ranks]"),
        (["--seeds", "2"], "2", "torchrun started 2 processes, and --seeds"),
    ],
)
def test_what_does_not_fit_torchrun_is_refused(cli, write_config, monkeypatch, overrides, size, says):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    if size is not None:
        words = {"TORCHELASTIC_RUN_ID": "7", "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
        words |= dict.fromkeys(("RANK", "LOCAL_RANK", "TORCHELASTIC_MAX_RESTARTS"), "0")
        for name, value in words.items():
            monkeypatch.setenv(name, value)
    outcome = cli("train", write_config(), *overrides)
    assert outcome.code == 2
    assert says in outcome.err


def test_one_process_of_torchrun_trains_alone(cli, write_config, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "7")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert cli("train", write_config(), "--quiet", "--until", "16").code == 0
