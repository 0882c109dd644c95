"""`rlcore sync`: the cases without a server; sending what waits is in `faults/test_e_loggers.py`."""

import subprocess
import sys
import threading
import tomllib

import pytest
import tomli_w
from rlcore_plugin_spool.sender import lock_spool
from rlcore_plugin_spool.spool import Spool
from rlcore_plugin_testing import make_run


def test_a_run_without_servers_has_nothing_to_send(tmp_path, cli):
    make_run(folder=tmp_path, sections={"logger": [{"use": "csv"}]}).trainer.train()
    outcome = cli("sync", tmp_path / "toy")
    assert (outcome.code, "has anything to send" in outcome.out) == (0, True)


def test_what_is_no_run_folder_is_refused(tmp_path, cli):
    outcome = cli("sync", tmp_path)
    assert (outcome.code, "is not a run folder" in outcome.err) == (2, True)


@pytest.mark.slow
def test_a_spool_that_a_run_in_training_sends_is_left_to_it(tmp_path, cli, monkeypatch):
    monkeypatch.setattr("rlcore_plugin_spool.sync.LINGER", 1.0)  # the run is of this process, which may look at its own
    pytest.importorskip("fcntl")

    run = make_run(folder=tmp_path, sections={"logger": [{"use": "wandb", "mode": "offline"}]})
    run.trainer.metrics.close()
    spool = tmp_path / "toy" / "spool" / "wandb"
    code = (
        "import sys; from pathlib import Path; from rlcore_plugin_spool.sender import lock_spool; "
        f"lock = lock_spool(Path({str(spool)!r}), 60); print('held', flush=True); sys.stdin.readline()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        outcome = cli("sync", tmp_path / "toy")
        other.stdin.close()
    assert (outcome.code, "in use by process" in outcome.err) == (2, True)
    run.trainer.parts.release()


@pytest.mark.slow
def test_the_sender_of_a_run_that_has_ended_is_waited_for(tmp_path, cli):
    pytest.importorskip("fcntl")
    run = make_run(folder=tmp_path, sections={"logger": [{"use": "wandb", "mode": "offline"}]})
    run.trainer.train()
    lock = lock_spool(tmp_path / "toy" / "spool" / "wandb", 60)
    timer = threading.Timer(2, lock.release)
    timer.start()
    outcome = cli("sync", tmp_path / "toy")
    timer.join()
    assert (outcome.code, "wandb: " in outcome.out) == (0, True)


@pytest.fixture
def left_behind(tmp_path, monkeypatch):
    """A run folder with two records for an MLflow logger, whose config names a loose file that leaves a trace."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MY_TOKEN", "secret")
    folder = tmp_path / "toy"
    make_run(folder=tmp_path, sections={"logger": []}).trainer.parts.release()
    spool = Spool(folder / "spool" / "mlflow")
    for step in (1, 2):
        spool.append({"kind": "metrics", "values": {"a": float(step)}, "step": step, "time": 1.0})
    spool.close()
    (folder / "loose.py").write_text(f"open({str(tmp_path / 'trace')!r}, 'w')")
    values = tomllib.loads((folder / "config.toml").read_text())
    uri = f"sqlite:///{tmp_path / 'arrived.db'}"
    values["logger"] = [{"use": "mlflow:mlflow", "tracking_uri": uri, "token": {"env": "MY_TOKEN"}}]
    values["hook"] = [{"use": "no-such-plugin"}]
    values["plugins"] = {"files": ["loose.py"]}
    (folder / "config.toml").write_text(tomli_w.dumps(values))
    return folder


def test_sync_runs_no_code_of_the_folder_and_sends_no_file_but_those_of_the_spool(left_behind, tmp_path, cli):
    secret = tmp_path / "secret.txt"
    secret.write_text("nobody's business")
    spool = left_behind / "spool" / "mlflow"
    (spool / "images").mkdir()
    (spool / "images" / "a.png").symlink_to(secret)
    names = ["../../../secret.txt", str(secret), "images/../../../../secret.txt", "images/a.png", "sent.json"]
    with (spool / "records.jsonl").open("a") as stream:
        for name in names:
            stream.write(f'{{"kind": "image", "name": "a", "file": "{name}", "step": 3, "time": 1.0}}\n')
    outcome = cli("sync", left_behind)
    assert outcome.code == 0, outcome.err
    to, done = outcome.out.splitlines()
    assert to == f"mlflow: sending to sqlite:///{tmp_path / 'arrived.db'}, with the value of MY_TOKEN"
    assert done == f"mlflow: 2 records sent, 5 set aside in {spool}/set-aside.jsonl, 0 left"
    assert not (tmp_path / "trace").exists(), "code of the run folder ran"
    assert len((spool / "set-aside.jsonl").read_text().splitlines()) == len(names)
    assert secret.read_text() == "nobody's business"
    assert not [file for file in (tmp_path / "mlartifacts").rglob("*") if "secret" in file.name or "a.png" in file.name]


def test_what_another_sender_sends_while_it_is_waited_for_is_not_sent_again(left_behind, cli, monkeypatch):
    def wait(folder, seconds):
        other = Spool(folder)
        records, offset = other.read(10)
        other.acknowledge(len(records), offset)
        other.confirm(len(records))
        return lock_spool(folder, seconds)

    spool = Spool(left_behind / "spool" / "mlflow")
    spool.acknowledge(1, spool.read(1)[1])
    monkeypatch.setattr("rlcore_plugin_spool.sync.lock_spool", wait)
    outcome = cli("sync", left_behind)
    assert (outcome.code, outcome.out) == (0, "mlflow: nothing waits, 2 records have arrived\n")


def test_the_help_of_sync_waits_for_no_torch():
    code = (
        "import sys; from rlcore.cli.command_line import main\ntry:\n    main(['sync', '--help'])\n"
        "except SystemExit:\n    print([name for name in ('torch', 'wandb', 'mlflow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "how long to wait for a server" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_a_spool_that_leads_out_of_the_run_folder_is_refused(left_behind, tmp_path, cli):
    spool = left_behind / "spool" / "mlflow"
    spool.rename(tmp_path / "elsewhere")
    spool.symlink_to(tmp_path / "elsewhere")
    outcome = cli("sync", left_behind)
    assert (outcome.code, "is a link" in outcome.err) == (5, True)
