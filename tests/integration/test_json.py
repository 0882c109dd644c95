"""`--json`: every command answers with one document, of the schema that it names."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import tomli_w
import torch
from rlcore_plugin_testing.command_answers import Document, json_schema, leaves
from rlcore_plugin_testing.small_run import TOY_CONFIG

from rlcore.cli.command_line import main, parser

from ..conftest import TINY

COMMANDS = leaves(parser())
WITH_LOGS = {"logger": [{"use": "csv"}], "evaluator": {"use": "episodes", "episodes": 2, "every": 32}}
FAULT = {"use": "testing:faulty", "fault": "raise", "from_frame": 40}
# what each command is called with, in a folder with a config, a study and a run; `!`: it takes seconds
EXAMPLES = {
    "bench list": "bench.toml",
    "!bench run": "bench.toml --jobs 1",
    "bench table": "bench.toml",
    "ckpt convert": "runs/tiny --to dcp",
    "ckpt list": "runs/tiny",
    "ckpt prune": "runs/tiny --dry-run",
    "ckpt show": "runs/tiny",
    "ckpt verify": "runs/tiny",
    "compare": "runs/tiny --threshold 5",
    "config check": "tiny.toml",
    "config explain": "tiny.toml",
    "config schema": "",
    "config show": "tiny.toml",
    "data check": "data",
    "data convert": "data --out converted",
    "data merge": "data data --out merged",
    "data record": "runs/tiny --episodes 1 --out recorded",
    "data show": "data",
    "env check": "CartPole-v1 --steps 20",
    "evaluate": "runs/tiny --best",
    "!export": "runs/tiny --format safetensors",
    "fork": "{checkpoint} forked",
    "import": "ppo.cleanrl_model --env CartPole-v1",
    "init": "ppo --env CartPole-v1 --name begun",
    "mcp": "",
    "plot": "runs/tiny",
    "!plugins doctor": "",
    "plugins list": "",
    "plugins new": "of-mine --kind hook",
    "plugins order": "tiny.toml",
    "plugins search": "ppo",
    "plugins show": "ppo",
    "!prove": "toy.toml --quick --kills 1",
    "pull": "pushed pulled",
    "push": "runs/tiny new",
    "report": "runs/tiny",
    "runs": "",
    "serve": "runs --port {port}",
    "skill": "",
    "!sweep": "study.toml",
    "sync": "runs/tiny",
    "train": "tiny.toml --set run.name=other",
    "watch": "runs/tiny --video watched.mp4",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with what the examples name."""
    folder = tmp_path_factory.mktemp("json")
    method = {"ours": {"config": "toy.toml"}}
    study = {"study": {"config": "toy.toml", "trials": 1}}
    for name, content in {
        "tiny": {**TINY, **WITH_LOGS},
        "failing": {**TINY, "run": {**TINY["run"], "name": "failing"}, "hook": [FAULT]},
        "toy": {**TOY_CONFIG, "evaluator": {"use": "episodes", "every": 32}},
        "bench": {"bench": {"seeds": [1]}, "task": {"toy": {"method": method}}},
        "study": {**study, "space": {"optimizer.lr": {"low": 1e-3, "high": 1e-1, "log": True}}},
    }.items():
        (folder / f"{name}.toml").write_text(tomli_w.dumps(content))
    layers = [torch.nn.Linear(*shape) for shape in ((4, 8), (8, 8), (8, 1), (4, 8), (8, 8), (8, 2))]
    names = [f"{part}.{number}" for part in ("critic", "actor") for number in (0, 2, 4)]
    weights = zip(names, layers, strict=True)
    model = {f"{name}.{key}": value for name, layer in weights for key, value in layer.state_dict().items()}
    torch.save(model, folder / "ppo.cleanrl_model")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["train", "tiny.toml", "--quiet"]) == 0
        assert main(["data", "record", "runs/tiny", "--episodes", "1", "--out", "data"]) == 0
        assert main(["push", "runs/tiny", "pushed"]) == 0
    return folder


@pytest.fixture
def said(place, monkeypatch, capfd) -> Callable[..., dict]:
    """Run a command line in the folder of the examples; return its document."""
    monkeypatch.chdir(place)

    def run(*arguments: str) -> dict:
        capfd.readouterr()
        code = main([*arguments, "--json"])
        document = json.loads(capfd.readouterr().out, parse_constant=pytest.fail)
        jsonschema.validate(document, json_schema(Document))
        assert (document["code"], document["ok"]) == (code, code == 0)
        return document

    return run


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def interrupt_what_listens(port: int) -> None:
    """Press Ctrl-C once a server of this process answers."""
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            os.kill(os.getpid(), signal.SIGINT)
            return
        time.sleep(0.05)


def test_every_command_has_an_example():
    assert sorted(COMMANDS) == sorted(name.removeprefix("!") for name in EXAMPLES)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name.lstrip("!"), marks=pytest.mark.slow if "!" in name else ()) for name in EXAMPLES],
)
def test_a_command_answers_as_its_schema_says(name, said, place):
    if name == "mcp":
        pytest.importorskip("mcp")
    arguments = next(text for command, text in EXAMPLES.items() if command.lstrip("!") == name)
    checkpoint, port = next((place / "runs/tiny/checkpoints").glob("0*")), free_port()
    if name == "serve":
        threading.Thread(target=interrupt_what_listens, args=(port,), daemon=True).start()
    document = said(*name.split(), *arguments.format(checkpoint=checkpoint, port=port).split())
    assert (document["ok"], document["error"], document["command"]) == (True, None, name), document["data"]
    defaults = COMMANDS[name]._defaults
    jsonschema.validate(document["data"], json_schema(defaults["answer"]))
    assert document["schema"] == defaults["schema"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_line_that_is_wrong_is_answered_in_json_by_each(name, said):
    document = said(*name.split(), "--jsn")
    assert (document["code"], document["error"]["kind"], document["data"]) == (2, "UsageError", None)


def test_an_error_names_file_section_key_and_hint(said, place):
    document = said("config", "check", "tiny.toml", "--set", "loss.clip_epsilo=1", "--set", "run.seed=true")
    assert (document["code"], document["data"], document["error"]["kind"]) == (2, None, "InvalidConfig")
    seed, clip = document["error"]["problems"]
    assert (seed["file"], seed["section"], seed["key"]) == ("tiny.toml", "run", "seed")
    assert (clip["section"], clip["key"], clip["hint"]) == ("loss", "clip_epsilo", "did you mean 'clip_epsilon'?")
    (place / "no.toml").write_text("[run]\nname = \n")
    (problem,) = said("config", "check", "no.toml")["error"]["problems"]
    assert (problem["file"], problem["place"]) == ("no.toml", "line 2, column 8")
    (problem,) = said("evaluate", "runs/none")["error"]["problems"]
    assert "runs/none" in problem["message"]


def test_a_training_that_fails_says_how_far_it_came(said):
    document = said("train", "failing.toml")
    (run,) = document["data"]["runs"]
    assert (document["ok"], run["folder"], run["now"]) == (False, "runs/failing", 64)
    again = said("train", "failing.toml")
    assert (again["code"], again["data"]["runs"]) == (2, []), "the run that is there was not touched"


@pytest.mark.slow
def test_a_script_goes_from_an_env_to_an_exported_policy_by_json_alone(tmp_path):
    def rlcore(*words):
        command = [sys.executable, "-m", "rlcore", *words, "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, check=False)
        document = json.loads(done.stdout)
        assert (document["ok"], document["code"]) == (done.returncode == 0, done.returncode)
        return document

    begun = rlcore("init", "ppo", "--env", "CartPole-v1")["data"]
    (config,) = begun["files"]
    wrong = rlcore("config", "check", config, "--set", "loss.clip_epsilo=0.1")["error"]["problems"][0]
    assert (wrong["key"], wrong["hint"]) == ("clip_epsilo", "did you mean 'clip_epsilon'?")
    small = ("--set", "run.total_frames=4_096", "--set", "evaluator.episodes=2")
    assert rlcore("config", "check", config, *small)["data"] == {"file": config, "left_out": []}
    (run,) = rlcore("train", config, *small)["data"]["runs"]
    assert (run["folder"], run["state"], run["now"]) == (begun["run"], "done", 4_096)
    evaluation = rlcore("evaluate", run["folder"], "--best", "--episodes", "3")["data"]
    assert len(evaluation["returns"]) == 3
    assert evaluation["mean_return"] >= 8
    exported = rlcore("export", run["folder"], "--best", "--format", "safetensors")["data"]
    assert (tmp_path / exported["file"]).stat().st_size == exported["bytes"]
