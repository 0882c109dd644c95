"""What is installed and what was trained: the schema of configs, the list of runs."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest
from rlcore_plugin_testing.config_schema import config_schema

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def schema():
    return config_schema()


def check(schema, values):
    jsonschema.Draft202012Validator(schema).validate(values)


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


def test_runs_lists_what_was_trained(cli, write_config):
    assert cli("train", write_config(evaluator={"use": "episodes", "episodes": 2}), "--quiet").code == 0
    second = write_config(run={"name": "second", "seed": 7})
    assert cli("train", second, "--quiet", "--until", "32").code == 0
    (Path("runs") / "second" / "checkpoints" / "000000000032-damaged").mkdir()
    rows = {row["run"]: row for row in json.loads(cli("runs", "--json").out)["data"]["runs"]}
    assert (rows["tiny"]["state"], rows["tiny"]["now"], rows["tiny"]["total"]) == ("done", 96, 96)
    assert (rows["second"]["state"], rows["second"]["now"], rows["second"]["seed"]) == ("stopped-resumable", 32, 7)
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
