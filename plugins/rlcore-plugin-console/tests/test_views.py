"""What the console shows of recorded runs, over a socket."""

import json

import pytest
from rlcore_plugin_console.metrics import Metrics

from rlcore.cli.command_line import main


def test_lists_the_runs_with_what_their_configs_share_and_where_they_differ(console):
    listed = console.get("/api/runs")
    rows = {row["name"]: row for row in listed["rows"]}
    assert set(rows) == {f"lr{rate}-seed-{seed}" for rate in ("1e-3", "2.5e-4") for seed in (1, 2)}
    row = rows["lr1e-3-seed-1"]
    assert (row["env"], row["algorithm"], row["seed"], row["reached"]) == ("CartPole-v1", "ppo", "1", 40448)
    assert row["best"] >= row["last"] > 0
    assert row["setting"] == rows["lr1e-3-seed-2"]["setting"] != rows["lr2.5e-4-seed-1"]["setting"]
    assert listed["common"]["env.id"] == "CartPole-v1"
    assert {config["optimizer.adam.lr"] for config in listed["configs"].values()} == {"0.001", "0.00025"}


def test_answers_with_what_has_changed_alone(console, runs):
    version = console.get("/api/runs")["version"]
    assert console.get(f"/api/runs?seen={version}") is None
    (runs / "lr1e-3-seed-1" / "status.json").write_text(json.dumps({"state": "failed", "frames": 5, "reason": "no"}))
    console.server.site.catalogue.look_again()
    news = console.get(f"/api/runs?seen={version}")
    assert [(row["name"], row["state"], row["reason"]) for row in news["rows"]] == [("lr1e-3-seed-1", "failed", "no")]
    assert "configs" not in news


def test_a_run_shows_its_curves_evaluations_config_and_output(console, runs):
    (runs / "lr1e-3-seed-1" / "output.log").write_text("  1%\r 50%\rdone\n")
    about = console.get("/api/run?run=lr1e-3-seed-1")
    curves = console.get("/api/curves?run=lr1e-3-seed-1")
    line = curves["metrics"]["evaluation/return"]["lines"][0]
    assert line["x"] == [each["place"] for each in about["evaluations"]]
    assert line["mean"] == pytest.approx([each["mean"] for each in about["evaluations"]], rel=1e-5)
    assert all(each["low"] <= each["mean"] <= each["high"] for each in about["evaluations"])
    assert 'id = "CartPole-v1"' in about["config"]
    assert about["output"]["text"] == "done\n"
    assert console.get(f"/api/curves?run=lr1e-3-seed-1&seen={curves['version']}") is None
    assert console.get(f"/api/run?run=lr1e-3-seed-1&seen={about['version']}") is None


def test_compares_settings_over_their_seeds(console, runs):
    names = "&".join(f"run={run.name}" for run in sorted(runs.iterdir()))
    compared = console.get(f"/api/compare?{names}")
    assert [(each["label"], each["runs"]) for each in compared["settings"]] == [("lr=0.001", 2), ("lr=0.00025", 2)]
    assert compared["differing"] == {"optimizer.adam.lr": ["0.001", "0.00025"]}
    assert all(len(line["low"]) == len(line["x"]) for line in compared["lines"])
    assert console.get(f"/api/compare?{names}&seen={compared['version']}") is None
    status, _, said = console.ask("GET", f"/api/compare?{names}&metric=nothing", **console.headers)
    assert (status, b"has no nothing" in said) == (422, True)


def test_rows_that_were_appended_are_read_once_and_those_that_were_cut_back_are_forgotten(tmp_path):
    table = tmp_path / "metrics.csv"
    table.write_text("frames,key,value\n")
    metrics = Metrics(tmp_path)
    metrics.read()
    with table.open("a") as stream:
        stream.write("1,a,1.0\n2,a,2.0\n3,a,3")
    metrics.read()
    assert metrics.curve("a")[1].tolist() == [1.0, 2.0]
    with table.open("a") as stream:
        stream.write("0.5\nrubbish\n4,a,nan\n4,b,1\n")
    metrics.read()
    assert metrics.curve("a")[0].tolist() == [1, 2, 3, 4]
    assert metrics.curve("a")[1].tolist()[:3] == [1.0, 2.0, 30.5]
    assert metrics.drawn("a", 100)["x"] == [1, 2, 3]
    table.write_text("frames,key,value\n1,a,1.0\n2,a,7.0\n3,a,8.0\n4,a,9.0\n5,a,9.5\n6,a,9.6\n7,a,9.7\n")
    metrics.read()
    assert metrics.curve("a")[1].tolist() == [1.0, 7.0, 8.0, 9.0, 9.5, 9.6, 9.7]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "nowhere"], "is not a folder"),
        (["serve", "lr1e-3-seed-1"], "is one run"),
        (["serve", ".", "--host", "0.0.0.0"], "--allow-remote"),
        (["serve", ".", "--allow-remote"], "add --host"),
        (["serve", ".", "--host", "192.0.2.1", "--allow-remote"], "cannot be had"),
        (["fork", "lr1e-3-seed-1", "new"], "is not in the folder checkpoints of a run"),
        (["fork", "lr1e-3-seed-1/checkpoints/none", "new"], "is no checkpoint of rlcore"),
    ],
)
def test_refuses_what_it_cannot_serve_or_fork(runs, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(runs)
    assert main(arguments) != 0
    assert words in capsys.readouterr().err
