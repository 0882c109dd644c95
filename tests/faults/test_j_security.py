"""Checkpoints and configs made to harm: no code of theirs runs, nothing leaves the folder, every failure is ours.

The opening happens in a process of its own, under an audit hook that stays for good.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rlcore.config.sections import load_config
from rlcore.errors import ConfigError

HOSTILE = Path(__file__).with_name("hostile.py")


def opened(folder, *arguments, seconds=120):
    done = subprocess.run(
        [sys.executable, str(HOSTILE), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=seconds,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


BACKENDS = ["torch", "torchsnapshot", "dcp"]


@pytest.fixture(scope="module", params=BACKENDS)
def made(request, tmp_path_factory):
    """What happened when the checkpoints made by hand were opened."""
    folder = tmp_path_factory.mktemp("made")
    return {**opened(folder, "made", folder, request.param), "backend": request.param}


def test_j1_opening_runs_no_code_of_a_checkpoint(made):
    assert made["good"] == dict.fromkeys(made["good"], "done"), "a good one does load under this guard"
    assert made["breaches"] == []
    assert made["hacked"] == []
    assert len(made["results"]) > 200


def test_j1_the_guard_notices_what_it_is_there_for(tmp_path):
    """Each attempt in turn, in a process under guard."""
    code = """
import os, pickle, subprocess, sys, torch
from pathlib import Path
from rlcore_plugin_testing.faults.guard import Breach, guard
from rlcore_plugin_torch import checkpointer
folder = Path(sys.argv[1])
class Payload:
    def __reduce__(self): return os.system, ("true",)
torch.save(Payload(), folder / "x.pt")
breaches = guard(folder / "inside")
attempts = [
    lambda: pickle.loads(pickle.dumps(Payload())),
    lambda: torch.load(folder / "x.pt", weights_only=False),
    lambda: __import__("mlflow"),
    lambda: subprocess.run(["true"]),
    lambda: os.system("true"),
    lambda: open(folder / "outside", "w"),
    lambda: os.mkdir(folder / "outside"),
    lambda: os.rename(folder / "x.pt", folder / "inside" / "x.pt"),
    lambda: (folder / "x.pt").unlink(),
    lambda: __import__("socket").create_connection(("127.0.0.1", 1)),
]
for number, attempt in enumerate(attempts):
    try:
        attempt()
    except Breach:
        pass
    assert len(breaches) == number + 1, (number, breaches)
"""
    (tmp_path / "inside").mkdir()
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_j2_j3_every_hostile_checkpoint_is_refused_by_an_error_of_ours_within_bounds(made):
    """Bounded are memory and time: 1 GiB beyond what the process has, 10 seconds."""
    wrong = {
        f"{name}: {way}": what
        for name, ways in made["results"].items()
        for way, what in ways.items()
        if not what.startswith(("refused", "done"))
    }
    assert not wrong
    if made["backend"] == "torch":
        loads = {name for name, ways in made["results"].items() if ways["load"] == "done"}
        assert loads == set(made["harmless"])


def check_fuzzed(folder, backend, count):
    result = opened(folder, "fuzzed", folder, backend, count, seconds=590)
    assert result["breaches"] == []
    assert result["hacked"] == []
    assert "unexpected" not in result["tally"], result["tally"]["unexpected"][:20]
    assert sum(number for what, number in result["tally"].items() if what.startswith("load ")) == count
    assert result["tally"]["load refused"] > count / 2


def test_j4_some_fuzzed_checkpoints(tmp_path):
    check_fuzzed(tmp_path, BACKENDS[0], 150)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_j4_a_thousand_fuzzed_checkpoints(tmp_path, backend):
    check_fuzzed(tmp_path, backend, 1_000)


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 100_000,
        "x = " + "[" * 500 + "]" * 500,
        ".".join("a" * 3000) + " = 1",
        "run = 3",
        "[run]\ntotal_frames = 1" + "0" * 5000,
        "[run]\ntotal_frames = inf",
        '[run]\nname = "../../x"\ntotal_frames = 10',
        '[run]\nname = "a\\u0000b"\ntotal_frames = 10',
        '[env]\nuse = "../../evil"',
        '[env]\nuse = "os:system"',
        '[[env]]\nuse = "x"',
        "\x00",
        "\ufeff[run]",
    ],
    ids=range(13),
)
def test_j2_a_hostile_config_is_refused_by_an_error_of_ours(tmp_path, text):
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConfigError):
        load_config(path)
    assert [file.name for file in tmp_path.iterdir()] == ["config.toml"]
