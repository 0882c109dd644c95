"""The queue: real runs, real kills, two queues on one folder, a limit of time."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rlcore_plugin_bench.bench_file import read_bench
from rlcore_plugin_bench.identity import differences, hash_of, identity_of
from rlcore_plugin_bench.row import portable, rows_of
from rlcore_plugin_bench.stored_row import StoredRow, read_row, write_row

from rlcore.cli.command_line import main
from rlcore.files import in_use
from rlcore.run_folder import read_status

LONG = ["run.total_frames=3000", "checkpoint.every=160", "evaluator.every=1000"]


def bench(*arguments):
    """Start a queue."""
    return subprocess.Popen([sys.executable, "-m", "rlcore", "bench", "run", *map(str, arguments)])


def until(condition, seconds=120):
    """Wait for something."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def row_of(path, name):
    return next(row for row in rows_of(read_bench(path)) if str(row) == name)


def saved(row):
    """Return whether a run has saved what it trained."""
    return [place for place in row.run.glob("checkpoints/0*") if int(place.name.partition("-")[0]) > 0]


def hashes(row):
    """Return how far a run is, and the hash over the state in its latest checkpoint."""
    latest = max((row.run / "checkpoints").glob("0*"))
    manifest = json.loads((latest / "manifest.json").read_text())
    return manifest["progress"], manifest["digest"]


@pytest.mark.slow
def test_rows_run_and_are_stored_and_are_not_run_again(write_bench, tmp_path, caplog, capsys):
    path = write_bench()
    assert main(["bench", "run", str(path), "--jobs", "1"]) == 0
    begun = [record.message for record in caplog.records if record.message.endswith(": begun")]
    assert begun == [f"toy/{name}: begun" for name in ("ours/1", "peer/1", "ours/2", "peer/2")]
    ours, peer = (read_row(row_of(path, f"toy/{name}/2").stored) for name in ("ours", "peer"))
    assert ours.frames == 64
    assert ours.score == ours.curve.returns[-1]
    assert ours.curve.at == [0, 32, 64]
    assert ours.curve.seconds == sorted(ours.curve.seconds)
    assert ours.inputs["config.run.seed"] == 2
    assert ours.command[:2] == ["rlcore", "train"]
    assert ours.versions["torch"]
    assert ours.machine["threads"] == 1
    assert (peer.score, peer.frames, peer.seconds, peer.also) == (4.0, 20, 1.0, {"length": 7})
    assert peer.curve.returns == [1.0, 4.0]

    before = {file: file.read_bytes() for file in tmp_path.rglob("seed-*.json.gz")}
    assert len(before) == 4
    shutil.rmtree(tmp_path / "runs")
    assert main(["bench", "run", str(path)]) == 0, "nothing is left to run, also without the run folders"
    assert {file: file.read_bytes() for file in tmp_path.rglob("seed-*.json.gz")} == before
    capsys.readouterr()
    assert main(["bench", "list", str(path), "--json"]) == 0
    assert [entry["state"] for entry in json.loads(capsys.readouterr().out)["data"]["rows"]] == ["done"] * 4


@pytest.mark.slow
def test_a_row_that_changed_is_stale_and_runs_again_when_asked(write_bench, caplog, capsys):
    path = write_bench(bench={"seeds": [1]})
    assert main(["bench", "run", str(path)]) == 0
    task = {
        "method": {
            "ours": {"config": "toy.toml", "set": ["optimizer.lr=0.5"]},
            "peer": {"command": ["peer.py", "5", "0"]},
        }
    }
    path = write_bench(bench={"seeds": [1]}, toy=task)
    capsys.readouterr()
    assert main(["bench", "list", str(path)]) == 0
    listed = capsys.readouterr().out
    assert "toy/ours  stale 1" in listed
    assert "config.optimizer.adam.lr = 0.5 now, 0.01 in the row" in listed
    assert 'command = ["peer.py", "5", "0"] now' in listed

    before = read_row(row_of(path, "toy/ours/1").stored)
    assert main(["bench", "run", str(path)]) == 0
    assert "2 rows are stale, and are not run again without --stale: toy/ours/1, toy/peer/1" in caplog.text
    assert read_row(row_of(path, "toy/ours/1").stored) == before
    assert main(["bench", "table", str(path)]) == 0
    page = capsys.readouterr().out
    assert "left out, as their config changed since: seeds 1" in page
    assert f"{before.score:,.1f}" not in page.partition("## How")[0].replace("[95%]", "")

    assert main(["bench", "run", str(path), "--stale"]) == 0
    after = read_row(row_of(path, "toy/ours/1").stored)
    assert after.inputs["config.optimizer.adam.lr"] == 0.5
    assert after.identity != before.identity
    assert read_row(row_of(path, "toy/peer/1").stored).score == 7.0


def test_versions_of_another_minor_are_stale_and_a_row_without_inputs_is_not(write_bench, capsys):
    path = write_bench(toy={"method": {"ours": {"config": "toy.toml"}}})
    rows = [row_of(path, f"toy/ours/{seed}") for seed in (1, 2)]
    inputs = {**identity_of(rows[0], None).inputs, "versions.torch": "1.9"}
    write_row(rows[0].stored, StoredRow("toy", "ours", 1, 1.0, inputs=inputs, identity=hash_of(inputs)))
    write_row(rows[1].stored, StoredRow("toy", "ours", 2, 1.0))
    assert main(["bench", "list", str(path)]) == 0
    listed = capsys.readouterr().out
    assert "done 2; stale 1" in listed
    assert '    versions.torch = "' in listed
    assert listed.count(" in the row") == 1


def test_a_key_that_a_row_lacks_has_its_default(write_bench):
    path = write_bench(toy={"method": {"ours": {"config": "toy.toml", "set": ["run.threads=2"]}}})
    identity = identity_of(row_of(path, "toy/ours/1"), None)
    new_in = {key: {**identity.inputs} for key in ("config.run.deterministic", "config.run.threads")}
    for key, inputs in new_in.items():
        del inputs[key]
    assert list(differences(new_in["config.run.deterministic"], identity)) == []
    assert list(differences(new_in["config.run.threads"], identity)) == [
        "config.run.threads = 2 now, not there in the row"
    ]
    removed = {**identity.inputs, "config.run.nothing": 1}
    assert list(differences(removed, identity)) == ["config.run.nothing = not there now, 1 in the row"]


def test_a_peer_that_fails_or_prints_nothing_of_use_is_named_and_the_others_go_on(write_bench, tmp_path, caplog):
    (tmp_path / "fails.py").write_text("import sys\nsys.exit('it has a bug')\n")
    (tmp_path / "says.py").write_text("print('nothing')\n")
    methods = {"fails": {"command": ["fails.py"]}, "says": {"command": ["says.py"]}, **PEER_ALONE}
    path = write_bench(bench={"seeds": [1]}, toy={"method": methods})
    assert main(["bench", "run", str(path)]) == 1
    assert "toy/fails/1: its command ended with 1: it has a bug" in caplog.text
    assert "the last line of its command is to be JSON with the key 'mean', and is 'nothing'" in caplog.text
    assert read_row(row_of(path, "toy/peer/1").stored).score == 3.0


PEER_ALONE = {"peer": {"command": ["peer.py", "{seed}", "0"]}}


def test_a_peer_without_its_interpreter_is_left_out_and_runs_when_it_is_named(write_bench, caplog, capsys):
    task = {"method": {"peer": {"command": ["peer.py", "{seed}", "0"], "python": "theirs", "packages": ["numpy"]}}}
    path = write_bench(toy=task)
    assert main(["bench", "run", str(path)]) == 0
    assert "peers of theirs are left out: name their interpreter with --python theirs=PATH" in caplog.text
    assert main(["bench", "list", str(path)]) == 0
    assert "no interpreter 1, 2" in capsys.readouterr().out
    assert main(["bench", "run", str(path), "--python", f"theirs={sys.executable}"]) == 0
    stored = read_row(row_of(path, "toy/peer/1").stored)
    assert set(stored.versions) == {"python", "numpy"}
    assert stored.command[0] == Path(sys.executable).name

    caplog.clear()
    assert main(["bench", "run", str(path), "--repeat"]) == 0
    assert "peers of theirs are left out" in caplog.text
    assert read_row(row_of(path, "toy/peer/1").stored) == stored
    assert main(["bench", "run", str(path), "--repeat", "--python", f"theirs={sys.executable}"]) == 0
    assert "toy/peer/1: 3.0; it was 3.0" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("kills_run", [True, False], ids=["both killed", "queue killed"])
def test_a_queue_that_is_killed_goes_on_as_if_nothing_had_happened(kills_run, write_bench, tmp_path, caplog):
    path = write_bench(bench={"seeds": [1]}, toy={"method": {"ours": {"config": "toy.toml", "set": LONG}}})
    row = row_of(path, "toy/ours/1")
    assert main(["bench", "run", str(path)]) == 0
    undisturbed, expected = read_row(row.stored), hashes(row)
    (tmp_path / "runs").rename(tmp_path / "undisturbed")
    row.stored.unlink()

    command = bench(path)
    until(lambda: saved(row))
    command.kill()
    command.wait()
    if kills_run:
        os.kill(read_status(row.run)["pid"], signal.SIGKILL)
        until(lambda: not in_use(row.run), 30)
    assert main(["bench", "run", str(path)]) == 0
    assert "toy/ours/1: resumed at" in caplog.text
    resumed = read_row(row.stored)
    assert (resumed.score, resumed.curve.at, resumed.curve.returns) == (
        undisturbed.score,
        undisturbed.curve.at,
        undisturbed.curve.returns,
    )
    assert resumed.identity == undisturbed.identity
    assert None not in resumed.curve.seconds
    assert resumed.curve.seconds == sorted(resumed.curve.seconds)
    assert hashes(row) == expected


@pytest.mark.slow
def test_a_run_that_is_killed_is_resumed_by_its_queue(write_bench):
    path = write_bench(bench={"seeds": [1]}, toy={"method": {"ours": {"config": "toy.toml", "set": LONG}}})
    row = row_of(path, "toy/ours/1")
    command = bench(path)
    until(lambda: saved(row))
    os.kill(read_status(row.run)["pid"], signal.SIGKILL)
    assert command.wait(timeout=120) == 0
    assert read_row(row.stored).frames == 3008, "whole batches of 16"
    assert "--resume" in row.log.read_text()


@pytest.mark.slow
def test_two_queues_on_one_folder_share_the_rows(write_bench):
    script = (
        "import json, sys, time\nopen('began', 'a').write(sys.argv[1] + '\\n')\ntime.sleep(1)\nprint('{\"mean\": 1}')\n"
    )
    path = write_bench(
        bench={"seeds": list(range(1, 9))}, toy={"method": {"peer": {"command": ["notes.py", "{seed}"]}}}
    )
    (path.parent / "notes.py").write_text(script)
    queues = [bench(path, "--jobs", "2") for _ in range(2)]
    assert [queue.wait(timeout=120) for queue in queues] == [0, 0]
    began = (path.parent / "began").read_text().split()
    assert sorted(began) == sorted(map(str, range(1, 9))), "each row ran once"
    assert len(list(path.parent.rglob("seed-*.json.gz"))) == 8


@pytest.mark.slow
def test_a_peer_outlives_its_queue_and_the_next_one_takes_its_result(write_bench, caplog):
    path = write_bench(bench={"seeds": [1]}, toy={"method": {"peer": {"command": ["peer.py", "{seed}", "6"]}}})
    row = row_of(path, "toy/peer/1")
    command = bench(path)
    until(lambda: in_use(row.run))
    command.kill()
    command.wait()
    assert main(["bench", "run", str(path)]) == 0
    assert "toy/peer/1: is still trained by a process of an earlier queue" in caplog.text
    assert read_row(row.stored).score == 3.0
    assert row.log.read_text().count("$ ") == 1, "it was started once"


@pytest.mark.slow
def test_a_stop_by_a_signal_saves_the_runs_and_says_how_to_go_on(write_bench, capfd):
    endless = ["run.total_frames=100_000_000", "checkpoint.every=160"]
    path = write_bench(toy={"method": {"ours": {"config": "toy.toml", "set": endless}}})
    rows = [row_of(path, f"toy/ours/{seed}") for seed in (1, 2)]
    command = bench(path, "--jobs", "2")
    until(lambda: all(map(saved, rows)))
    command.send_signal(signal.SIGINT)
    assert command.wait(timeout=60) == 130
    assert f"go on with: rlcore bench run {path}" in capfd.readouterr().err
    assert [read_status(row.run)["state"] for row in rows] == ["stopped-resumable"] * 2


@pytest.mark.slow
def test_what_cannot_finish_in_time_is_stopped_by_its_speed_and_resumes_later(write_bench, caplog):
    def method(frames):
        return {
            "method": {"ours": {"config": "toy.toml", "set": [f"run.total_frames={frames}", "checkpoint.every=160"]}}
        }

    path = write_bench(bench={"seeds": [1]}, endless=method(100_000_000), short=method(64))
    began = time.monotonic()
    assert main(["bench", "run", str(path), "--jobs", "1", "--max-time", "60"]) == 0
    assert time.monotonic() - began < 55, "it does not wait for the end of the time"
    assert "endless/ours/1: stopped: needs about " in caplog.text
    assert read_row(row_of(path, "short/ours/1").stored) is not None
    row = row_of(path, "endless/ours/1")
    assert read_row(row.stored) is None
    assert read_status(row.run)["state"] == "stopped-resumable"
    assert main(["bench", "run", str(path), "--jobs", "1", "--max-time", "12"]) == 0
    assert "endless/ours/1: resumed at" in caplog.text


def test_what_took_longer_than_the_time_that_is_left_is_not_begun(write_bench, caplog):
    path = write_bench(toy={"method": PEER_ALONE})
    assert main(["bench", "run", str(path), "--rows", "toy/peer/1"]) == 0
    row = row_of(path, "toy/peer/1")
    write_row(row.stored, replace(read_row(row.stored), wall=1000.0))
    assert main(["bench", "run", str(path), "--max-time", "1m"]) == 0
    assert "toy/peer/2: not begun: needs about 17 min, and 60 s are left" in caplog.text
    assert read_row(row_of(path, "toy/peer/2").stored) is None


@pytest.mark.slow
def test_a_preset_runs_and_a_row_that_is_repeated_has_the_same_returns(write_bench, capsys):
    changes = ["run.total_frames=2048", "evaluator.every=1024", "evaluator.episodes=2"]
    method = {"ppo": {"preset": "ppo-classic-control", "env": "CartPole-v1", "set": changes}}
    path = write_bench(bench={"seeds": [1]}, toy={"method": method})
    row = row_of(path, "toy/ppo/1")
    assert main(["bench", "run", str(path)]) == 0
    first = read_row(row.stored)
    assert len(first.curve.at) >= 2
    capsys.readouterr()
    assert main(["runs", str(row.folder), "--json"]) == 0
    assert [run["state"] for run in json.loads(capsys.readouterr().out)["data"]["runs"]] == ["done"]
    assert main(["bench", "run", str(path), "--repeat", "--discard"]) == 0
    again = read_row(row.stored)
    assert (again.score, again.curve.at, again.curve.returns) == (first.score, first.curve.at, first.curve.returns)
    assert row.log.read_text().count("$ rlcore train") == 2
    assert not row.run.exists()


def test_a_command_is_noted_without_the_paths_of_the_machine():
    here = Path.cwd()
    assert portable(["/elsewhere/bin/python", f"{here}/peer.py", f"--set=buffer.path='{here}/data'"]) == [
        "python",
        "peer.py",
        "--set=buffer.path='data'",
    ]
    assert portable([f"{here}/.venv/bin/python", "peer.py"]) == [".venv/bin/python", "peer.py"]
