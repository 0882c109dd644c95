"""Code of strangers: whoever owns its files, each command asks before it runs any."""

from __future__ import annotations

import os
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
import tomli_w
from rlcore_plugin_agents.exporting import export_agent

import rlcore
from rlcore.config import own_modules, trust
from rlcore.config.trust import UntrustedError
from rlcore.run_folder import folder as run_folder

pytestmark = pytest.mark.timeout(300)
CSV = {"logger": [{"use": "csv"}]}
HOOK = """
open("HACKED", "w")
from pydantic import BaseModel
from rlcore import Component, hookimpl

class Hook:
    class Config(BaseModel):
        pass

    def __init__(self, config, context):
        pass

    @hookimpl
    def post_steps(self, trainer):
        pass

@hookimpl
def provide_components():
    return [Component("hook", "mine", Hook)]
"""
NETWORK = """
open("HACKED", "w")
from torch import nn

def encoder(space):
    return nn.Flatten()
"""
ENV = """
open("HACKED", "w")
import gymnasium

gymnasium.register("Theirs-v0", entry_point="gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=500)
"""


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    """A list of what is trusted that is empty, and an interpreter that goes on as it was."""
    path, added, bytecode = list(sys.path), list(own_modules._added), sys.dont_write_bytecode
    monkeypatch.setenv("RLCORE_CONFIG_HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "")
    monkeypatch.setattr(trust, "_unwritten", set())
    yield Path(os.environ["RLCORE_CONFIG_HOME"])
    sys.path[:], own_modules._added[:], sys.dont_write_bytecode = path, added, bytecode
    for name in ("mine", "their_nets", "their_envs"):
        sys.modules.pop(name, None)


def forget(home):
    shutil.rmtree(home / "trusted", ignore_errors=True)


@pytest.fixture
def hacked(workdir):
    """Say whether code ran, and forget it."""

    def ran():
        there = (workdir / "HACKED").exists()
        (workdir / "HACKED").unlink(missing_ok=True)
        sys.modules.pop("mine", None)
        return there

    return ran


def write_code(folder):
    (folder / "mine.py").write_text(HOOK)
    (folder / "their_nets.py").write_text(NETWORK)
    (folder / "their_envs.py").write_text(ENV)


@pytest.fixture
def downloaded(cli, write_config, workdir, home, hacked):
    """The folder of a run that another machine trained, with its code inside, owned by the user."""
    write_code(workdir)
    path = write_config(
        env={"id": "their_envs:Theirs-v0"},
        model={"encoder": "their_nets:encoder"},
        plugins={"files": ["mine.py"]},
        hook=[{"use": "mine:mine"}],
        evaluator={"use": "episodes", "every": 32, "episodes": 1},
        **CSV,
    )
    assert cli("train", path, "--quiet", "--until", "32").code == 0
    folder = workdir / "theirs" / "run"
    folder.parent.mkdir()
    Path("runs/tiny").rename(folder)
    for name in ("mine.py", "their_nets.py", "their_envs.py"):
        (workdir / name).rename(folder / name)
    path.unlink()

    config = run_folder.read_config(folder)
    config["plugins"] |= {"files": ["mine.py"], "path": ["."]}
    run_folder.write_config(folder, config)
    forget(home)
    hacked()
    for name in ("their_nets", "their_envs"):
        sys.modules.pop(name, None)
    sys.path[:] = [place for place in sys.path if place != str(workdir)]
    return folder


def extending(folder):
    Path("own.toml").write_text(f"extends = '{folder / 'config.toml'}'\n[run]\nname = 'own'\nfolder = 'runs'\n")
    return "own.toml"


def study(folder):
    Path("study.toml").write_text(
        f"[study]\nconfig = '{folder / 'config.toml'}'\ntrials = 1\n[space]\n\"optimizer.0.lr\" = [1e-3, 2e-3]\n"
    )
    return "study.toml"


COMMANDS = {
    "evaluate": lambda run: ["evaluate", run, "--episodes", 1],
    "resume": lambda run: ["train", "--resume", run, "--quiet"],
    "train": lambda run: ["train", run / "config.toml", "--quiet", "--set", "run.name=own"],
    "dry run": lambda run: ["train", run / "config.toml", "--dry-run"],
    "seeds": lambda run: ["train", run / "config.toml", "--seeds", 1, "--dry-run", "--set", "run.name=own"],
    "extends": lambda run: ["train", extending(run), "--dry-run"],
    "env check": lambda run: ["env", "check", "--steps", 20, "--config", run / "config.toml"],
    "plugins order": lambda run: ["plugins", "order", run / "config.toml"],
    "prove": lambda run: ["prove", run / "config.toml", "--quick", "--kills", 1],
    "record run": lambda run: ["data", "record", run, "--episodes", 1, "--out", "data"],
    "record config": lambda run: ["data", "record", run / "config.toml", "--episodes", 1, "--out", "data"],
    "export": lambda run: ["export", run, "--format", "torch-export", "--output", "a.pt2"],
    "sweep": lambda run: ["sweep", study(run), "--dry-run"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_code_of_a_run_that_was_not_written_here_runs_only_when_trusted(cli, downloaded, hacked, name):
    command = COMMANDS[name](downloaded)
    outcome = cli(*command)
    assert outcome.code == 2, outcome.err
    assert "was not written by rlcore on this machine" in outcome.err
    assert "--trust" in outcome.err
    assert not hacked()
    if name == "prove":  # it takes long
        return
    outcome = cli(*command, "--trust")
    assert outcome.code == 0, outcome.err
    assert hacked()


@pytest.mark.parametrize("action", ["check", "show", "explain"])
def test_the_config_commands_leave_out_what_may_not_run(cli, downloaded, hacked, action):
    outcome = cli("config", action, downloaded / "config.toml")
    assert outcome.code == 0, outcome.err
    assert {"check": "not checked: 1 [hook]", "show": "mine:mine"}.get(action, "") in outcome.out
    assert not hacked()
    assert cli("config", action, downloaded / "config.toml", "--trust").code == 0
    assert hacked()


def test_a_config_that_hides_that_it_is_of_a_run_is_one_by_what_lies_beside_it(cli, downloaded, hacked):
    config = run_folder.read_config(downloaded)
    del config["versions"]
    (downloaded / "config.toml").write_text(tomli_w.dumps(config))
    assert cli("env", "check", "--config", downloaded / "config.toml").code == 2
    (downloaded / "run_id").unlink()
    for command in (COMMANDS["env check"], COMMANDS["evaluate"], COMMANDS["resume"]):
        assert cli(*command(downloaded)).code == 2
    assert not hacked()


def test_trust_is_remembered_until_config_or_code_change(cli, downloaded, hacked):
    command = COMMANDS["evaluate"](downloaded)
    assert cli(*command, "--trust").code == 0
    assert hacked()
    assert cli(*command).code == 0
    assert hacked()
    assert not list(downloaded.rglob("__pycache__")), "bytecode that lies there is part of what is trusted"
    (downloaded / "helper.py").write_text("")
    assert cli(*command).code == 2
    assert cli(*command, "--trust").code == 0
    with (downloaded / "config.toml").open("a") as stream:
        stream.write("\n[[transform]]\nuse = 'clip'\n")
    hacked()
    assert cli(*command).code == 2
    assert not hacked()


def test_code_that_was_put_beside_a_config_of_this_machine_does_not_run(cli, write_config, workdir, hacked):
    write_code(workdir)
    path = write_config(model={"encoder": "their_nets:encoder"}, **CSV)
    assert cli("train", path, "--quiet", "--until", "32").code == 0
    assert cli("train", "--resume", "runs/tiny", "--quiet", "--until", "64").code == 0
    assert cli("config", "check", "runs/tiny/config.toml").code == 0
    assert rlcore.load_agent("runs/tiny").frames == 64
    assert hacked()
    (workdir / "their_nets.py").rename("runs/tiny/their_nets.py")
    sys.modules.pop("their_nets")
    with pytest.raises(UntrustedError, match=r"\[model\] encoder, .*their_nets"):
        rlcore.load_agent("runs/tiny")
    assert not hacked()


def test_a_function_that_a_strangers_config_calls_is_code_though_it_is_installed(cli, write_config, workdir, home):
    wrapper = {"use": "pydoc:pipepager", "cmd": "touch HACKED"}
    assert cli("train", write_config(**CSV), "--quiet").code == 0
    config = run_folder.read_config(Path("runs/tiny"))
    config["env"]["wrappers"] = [wrapper]
    (workdir / "runs/tiny/config.toml").write_text(tomli_w.dumps(config))
    outcome = cli("env", "check", "--config", "runs/tiny/config.toml")
    assert outcome.code == 2
    assert "[env] wrappers.use" in outcome.err
    assert not (workdir / "HACKED").exists()


def test_a_run_of_a_stranger_that_names_no_code_needs_no_trust(cli, write_config, home):
    assert cli("train", write_config(**CSV), "--quiet").code == 0
    assert not (home / "trusted").exists(), "nothing has to be noted"
    assert cli("evaluate", "runs/tiny", "--episodes", 1).code == 0
    assert rlcore.load_agent("runs/tiny").frames == 96


def test_code_for_the_training_alone_does_not_keep_an_agent_from_being_loaded(cli, write_config, workdir, home, hacked):
    write_code(workdir)
    assert cli("train", write_config(plugins={"files": ["mine.py"]}, hook=[{"use": "mine:mine"}]), "--quiet").code == 0
    assert hacked()
    forget(home)
    assert rlcore.load_agent("runs/tiny").frames == 96
    assert not hacked()


def test_a_config_that_the_user_wrote_needs_no_trust_unless_it_belongs_to_others(
    cli, write_config, workdir, monkeypatch, home
):
    write_code(workdir)
    path = write_config(plugins={"files": ["mine.py"]}, hook=[{"use": "mine:mine"}])
    assert cli("config", "check", path).code == 0
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    monkeypatch.setattr(trust, "_other_owner", lambda place: "user 'nobody'" if place.name == "mine.py" else "")
    for command in (["train", path, "--dry-run"], ["prove", path, "--quick"], ["plugins", "order", path]):
        outcome = cli(*command)
        assert outcome.code == 2
        assert "belongs to user 'nobody', not to you" in outcome.err
    with pytest.raises(UntrustedError, match="trust=True"):
        rlcore.load_config(path)
    rlcore.load_config(path, trust=True)
    rlcore.load_config(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_files_of_another_user_are_known_by_their_owner(tmp_path):
    place = tmp_path / "theirs"
    place.write_text("")
    assert trust._other_owner(place) == ""
    os.chown(place, 65534, 65534)
    assert trust._other_owner(place) == "user 'nobody'"
    os.chown(place, 54321, 54321)
    assert trust._other_owner(place) == "user 54321"
    assert trust._other_owner(tmp_path / "none") == ""


def test_an_exported_program_is_code(cli, write_config, home, tmp_path, monkeypatch):
    assert cli("train", write_config(), "--quiet").code == 0
    file = export_agent(Path("runs/tiny"), "torch-export")
    assert rlcore.load_agent(file).frames == 96
    forget(home)
    with pytest.raises(UntrustedError, match=r"not written by rlcore on this machine.*trust=True"):
        rlcore.load_agent(file)
    outcome = cli("evaluate", "runs/tiny", "--agent", file, "--episodes", 1)
    assert outcome.code == 2
    assert "reading it may run code" in outcome.err
    assert cli("evaluate", "runs/tiny", "--agent", file, "--episodes", 1, "--trust").code == 0
    assert rlcore.load_agent(file).frames == 96
    with file.open("ab") as stream:
        stream.write(b"\0")
    with pytest.raises(UntrustedError):
        rlcore.load_agent(file)


def test_weights_in_safetensors_are_code_where_their_config_names_some(cli, write_config, workdir, home, hacked):
    pytest.importorskip("safetensors")
    write_code(workdir)
    assert cli("train", write_config(model={"encoder": "their_nets:encoder"}), "--quiet").code == 0
    file = export_agent(Path("runs/tiny"), "safetensors")
    assert rlcore.load_agent(file).frames == 96
    forget(home)
    with pytest.raises(UntrustedError):
        rlcore.load_agent(file)
    assert rlcore.load_agent(file, trust=True).frames == 96


def test_a_home_that_cannot_be_written_to_stops_no_run(cli, write_config, workdir, monkeypatch, tmp_path_factory):
    blocked = tmp_path_factory.mktemp("blocked") / "file"
    blocked.write_text("no folder")
    monkeypatch.setenv("RLCORE_CONFIG_HOME", str(blocked))
    write_code(workdir)
    outcome = cli("train", write_config(plugins={"files": ["mine.py"]}, hook=[{"use": "mine:mine"}]))
    assert outcome.code == 0, outcome.err
    assert outcome.err.count("cannot be noted as trusted") == 1
    assert cli("evaluate", "runs/tiny", "--episodes", 1).code == 0, "this process knows what it wrote"


@pytest.mark.parametrize("name", ["XDG_CONFIG_HOME", "HOME"])
def test_the_list_lies_where_the_platform_has_settings(monkeypatch, tmp_path, name):
    monkeypatch.delenv("RLCORE_CONFIG_HOME")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv(name, str(tmp_path))
    trust.note("ab", "what")
    assert [path.name for path in tmp_path.rglob("ab")] == ["ab"]
    assert trust._list().parent.name == "rlcore"


def _note(number):
    trust.note(f"{number:064x}", "what")


def test_processes_that_note_at_once_lose_nothing(home):
    with ProcessPoolExecutor(4) as pool:
        list(pool.map(_note, range(64)))
    assert len(list((home / "trusted").iterdir())) == 64
