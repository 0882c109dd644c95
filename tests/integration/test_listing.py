"""What is installed and what was trained: the schema of configs, the doctor of plugins, the list of runs."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def schema(cli):
    return json.loads(cli("config", "schema").out)


def check(schema, values):
    jsonschema.Draft202012Validator(schema).validate(values)


@pytest.mark.parametrize("name", ["ppo-idp.toml", "ppo-cartpole.toml"])
def test_the_schema_takes_the_examples(schema, name):
    jsonschema.Draft202012Validator.check_schema(schema)
    check(schema, tomllib.loads((ROOT / "examples" / name).read_text()))


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("loss", "clip_epsilno", 0.2),
        ("loss", "clip_epsilon", "much"),
        ("loss", "clip_epsilon", -1),
        ("run", "total_frames", 0),
        ("env", "use", "gymnasum"),
        ("checkpoint", "keep_last", 0),
        ("buffer", "minibatch_size", 0),
    ],
)
def test_the_schema_refuses_what_the_config_check_refuses(schema, section, key, value):
    values = tomllib.loads((ROOT / "examples" / "ppo-cartpole.toml").read_text())
    values[section][key] = value
    with pytest.raises(jsonschema.ValidationError):
        check(schema, values)


def test_the_schema_explains_every_key(schema):
    for section in ("run", "plugins", "metrics"):
        for key, value in schema["properties"][section]["properties"].items():
            assert value.get("description"), f"[{section}] {key}"


def test_the_doctor_finds_nothing_wrong_with_our_own_plugins(cli):
    outcome = cli("plugins", "doctor")
    assert outcome.code == 0, outcome.out
    assert "all is well" in outcome.out


def test_the_doctor_names_each_problem_with_its_fix(cli, site, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(site.folder))  # for the fresh interpreters
    light = "from rlcore import Component, hookimpl\n\n@hookimpl\ndef provide_components():\n    return []\n"
    twin = light.replace("[]", "[Component('loss', 'twin', 'x:Y')]")
    site.add("broken-dist", "broken", "import nowhere_to_be_found\n" + light, entry_point="broken")
    site.add("heavy-dist", "heavy", "import numpy\n" + light, entry_point="heavy")
    site.add("old-dist", "old", light, entry_point="old", requires=["rlcore<0.1"])
    site.add("one-dist", "one", twin, entry_point="one")
    site.add("two-dist", "two", twin, entry_point="two")
    site.add("claims-dist", "claims", light, entry_point="claimed")
    site.add("takes-dist", "takes", light, entry_point="claimed")
    outcome = cli("plugins", "doctor")
    assert outcome.code == 2
    assert "broken: importing broken fails: ModuleNotFoundError: No module named 'nowhere_to_be_found'" in outcome.out
    assert "heavy: import heavy also imports" in outcome.out
    assert "numpy (imported at" in outcome.out
    assert "pip install --upgrade old-dist rlcore" in outcome.out
    assert "claimed: the name is claimed by 2 distributions" in outcome.out
    assert "2 plugins provide loss 'twin'" in outcome.out
    assert "use = 'one:twin' or use = 'two:twin'" in outcome.out
    assert outcome.out.count("fix: ") == 5


def test_runs_lists_what_was_trained(cli, write_config):
    assert cli("train", write_config(evaluator={"use": "episodes", "episodes": 2}), "--quiet").code == 0
    second = write_config(run={"name": "second", "seed": 7})
    assert cli("train", second, "--quiet", "--until", "32").code == 0
    (Path("runs") / "second" / "checkpoints" / "000000000032-damaged").mkdir()
    rows = {row["run"]: row for row in json.loads(cli("runs", "--json").out)}
    assert (rows["tiny"]["state"], rows["tiny"]["frames"], rows["tiny"]["total_frames"]) == ("done", 96, 96)
    assert (rows["second"]["state"], rows["second"]["frames"], rows["second"]["seed"]) == ("stopped-resumable", 32, 7)
    assert rows["tiny"]["env"] == "CartPole-v1"
    assert rows["tiny"]["best"] >= 8
    assert rows["second"]["best"] is None
    text = cli("runs").out.splitlines()
    assert sorted(line.split()[:2] for line in text) == [["second", "stopped-resumable"], ["tiny", "done"]]


def test_runs_of_no_folder_is_refused(cli, workdir):
    outcome = cli("runs", "elsewhere")
    assert outcome.code == 2
    assert "elsewhere" in outcome.err
    (workdir / "empty").mkdir()
    assert "no runs" in cli("runs", "empty").out
