"""`rlcore sync`: the cases without a server; sending what waits is in `faults/test_e_loggers.py`."""

import threading

import pytest

from rlcore.spool_sender import lock_spool
from rlcore.testing import make_run


def test_a_run_without_servers_has_nothing_to_send(tmp_path, cli):
    make_run(folder=tmp_path, sections={"logger": [{"use": "csv"}]}).trainer.train()
    outcome = cli("sync", tmp_path / "toy")
    assert (outcome.code, "has anything to send" in outcome.out) == (0, True)


def test_what_is_no_run_folder_is_refused(tmp_path, cli):
    outcome = cli("sync", tmp_path)
    assert (outcome.code, "is not a run folder" in outcome.err) == (2, True)


def test_a_spool_that_a_run_in_training_sends_is_left_to_it(tmp_path, cli):
    pytest.importorskip("fcntl")
    import subprocess
    import sys

    run = make_run(folder=tmp_path, sections={"logger": [{"use": "wandb", "mode": "offline"}]})
    run.trainer.metrics.close()
    spool = tmp_path / "toy" / "spool" / "wandb"
    code = (
        "import sys; from pathlib import Path; from rlcore.spool_sender import lock_spool; "
        f"lock = lock_spool(Path({str(spool)!r}), 60); print('held', flush=True); sys.stdin.readline()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        outcome = cli("sync", tmp_path / "toy")
        other.stdin.close()
    assert (outcome.code, "in use by process" in outcome.err) == (2, True)
    run.trainer.parts.release()


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
