"""A logger that spools: what is sent, in which process, and what becomes of it when something ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from rlcore.errors import RlcoreError
from rlcore.run_folder import Lock
from rlcore.spool import Spool
from rlcore.spooling_logger import SpoolingLogger

BACKEND = """
import json, os, random, time
from pathlib import Path


class FileBackend:
    # appends what it is sent to a file; each line with the number of the process
    def __init__(self, file, fails=0, seconds=0.0, opening=0.0):
        self.began = time.monotonic()
        self.file, self.fails, self.seconds, self.opening = Path(file), fails, seconds, opening
        self.sends = 0

    def connect(self, known_id, token, continues):
        self.run = [continues, token]
        time.sleep(self.opening)
        self.start = [self.began, time.monotonic()]
        random.random()
        os.environ["MESS"] = "left by a library"
        if self.fails:
            self.fails -= 1
            raise ConnectionError("nobody there")
        return known_id or token

    def send(self, records, folder):
        time.sleep(self.seconds)
        self.sends += 1
        with self.file.open("a") as stream:
            for record in records:
                there = "file" not in record or (folder / record["file"]).is_file()
                stream.write(json.dumps([os.getpid(), there, {**record, **self.about()}]) + "\\n")

    def about(self):
        return {"run": self.run, "start": self.start, "sends": self.sends}

    def arrived(self):
        return None

    def disconnect(self):
        with self.file.open("a") as stream:
            stream.write("end\\n")
        return True
"""


@pytest.fixture
def backend(tmp_path, monkeypatch):
    """Make loggers of a back end that writes into a file; it is imported by name, also in another process."""
    (tmp_path / "module_of_backend.py").write_text(BACKEND)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda process=False, name="spool", **arguments: SpoolingLogger(
        "trial",
        "nowhere",
        tmp_path / name,
        "module_of_backend:FileBackend",
        {"file": str(tmp_path / "arrived"), **arguments},
        process,
    )
    sys.modules.pop("module_of_backend", None)


def arrived(tmp_path):
    """The records in the file, without the lines that end a run."""
    lines = (tmp_path / "arrived").read_text().splitlines()
    return [json.loads(line) for line in lines if line != "end"]


@pytest.mark.parametrize("process", [True, False])
def test_everything_arrives_in_order_and_the_run_is_ended(tmp_path, backend, process):
    import os

    logger = backend(process)
    logger.log_hparams({"run": {"seed": 1}})
    for step in range(250):
        logger.log_metrics({"a": float(step)}, step)
    logger.log_image("picture", np.zeros((1, 2, 2), np.uint8), 250)
    assert logger.catch_up(30)
    logger.close()
    found = arrived(tmp_path)
    assert [record.get("step") for _, _, record in found] == [None, *range(251)]
    assert all(there for _, there, _ in found), "files are there while they are sent"
    assert not list((tmp_path / "spool").rglob("*.png")), "and removed afterwards"
    assert {number == os.getpid() for number, _, _ in found} == {not process}
    assert (tmp_path / "arrived").read_text().endswith("end\n")
    assert logger.id == logger.spool.sent.token
    assert ("MESS" in os.environ) == (not process)
    os.environ.pop("MESS", None)


@pytest.mark.parametrize("process", [True, False])
def test_a_back_end_that_fails_at_first_is_tried_again_and_both_is_said(tmp_path, backend, process, caplog):
    logger = backend(process, fails=2)
    logger.log_metrics({"a": 1.0}, 1)
    with pytest.raises(RlcoreError, match="ConnectionError: nobody there"):
        logger.start(wait=True)
    assert logger.catch_up(30)
    logger.close()
    assert len(arrived(tmp_path)) == 1
    assert caplog.text.count("ConnectionError: nobody there; what is logged waits on disk") == 1
    assert "is connected again" in caplog.text
    assert logger.error == ""


def test_a_resume_leaves_out_what_was_sent_and_sends_the_rest(tmp_path, backend):
    logger = backend()
    for step in (1, 2):
        logger.log_metrics({"a": float(step)}, step)
    state = logger.state_dict()
    logger.log_metrics({"a": 3.0}, 3)
    assert logger.catch_up(30)
    logger.close()
    resumed = backend()
    resumed.load_state_dict(state)
    assert resumed.unsent == 0
    for step in (3, 4):
        resumed.log_metrics({"a": float(step)}, step)
    assert resumed.catch_up(30)
    assert resumed.unsent == 0
    resumed.close()
    assert [record["step"] for _, _, record in arrived(tmp_path)] == [1, 2, 3, 4]


def test_a_resume_sends_what_was_cut_off_within_a_step(tmp_path, backend):
    logger = backend()
    state = logger.state_dict()
    logger.log_metrics({"a": 1.0}, 1)
    assert logger.catch_up(30)
    logger.close()
    resumed = backend()
    resumed.load_state_dict(state)
    resumed.log_metrics({"a": 1.0, "b": 2.0}, 1)
    resumed.log_metrics({"c": 3.0}, 1)
    resumed.log_text("t", "text", 1)
    assert resumed.catch_up(30)
    resumed.close()
    assert [record.get("values", record.get("text")) for _, _, record in arrived(tmp_path)] == [
        {"a": 1.0},
        {"b": 2.0},
        {"c": 3.0},
        "text",
    ]


def test_what_came_a_second_time_may_come_a_third(tmp_path, backend):
    state = None
    for _ in range(3):  # the second and third time go back to the beginning
        logger = backend()
        state = state or logger.state_dict()
        logger.load_state_dict(state)
        for step in (1, 2):
            logger.log_metrics({"a": float(step)}, step)
        assert logger.catch_up(30)
        logger.close()
    assert [record["step"] for _, _, record in arrived(tmp_path)] == [1, 2]


def test_another_training_goes_on_in_a_run_of_its_own_until_it_is_contacted_and_after(tmp_path, backend):
    first = backend()
    first.log_metrics({"a": 1.0}, 1)
    assert first.catch_up(30)
    state = first.state_dict()
    first.log_metrics({"a": 2.0}, 2)
    assert first.catch_up(30)
    first.close()
    unlucky = backend()
    unlucky.load_state_dict(state)
    unlucky.branch()  # and it is killed before the new run is made
    assert unlucky.id == ""
    second = backend()
    second.load_state_dict(state)
    second.log_metrics({"a": 20.0}, 2)
    assert second.catch_up(30)
    second.close()
    third = backend()  # the same training again: the same run
    third.load_state_dict(state)
    third.log_metrics({"a": 20.0}, 2)
    third.log_metrics({"a": 30.0}, 3)
    assert third.catch_up(30)
    third.close()
    found = [(record["run"], record["step"]) for _, _, record in arrived(tmp_path)]
    (nothing, token), (continues, another) = found[0][0], found[2][0]
    assert [step for _, step in found] == [1, 2, 2, 3]
    assert (nothing, continues) == ("", token)
    assert found[3][0] == [continues, another]
    assert third.id == another != token


def test_the_id_of_a_run_outlives_its_spool(tmp_path, backend):
    logger = backend()
    logger.start(wait=True)
    state = logger.state_dict()
    logger.close()
    elsewhere = backend(name="another")
    elsewhere.load_state_dict(state)
    elsewhere.start(wait=True)
    assert elsewhere.id == state["id"] != ""
    elsewhere.close()


@pytest.mark.parametrize("process", [True, False])
def test_what_comes_soon_after_is_sent_together_and_not_waited_for_when_there_is_hurry(tmp_path, backend, process):
    logger = backend(process, seconds=0.2)
    logger.log_metrics({"a": 0.0}, 0)
    while not (tmp_path / "arrived").exists():
        time.sleep(0.02)
    for step in (1, 2, 3):
        logger.log_metrics({"a": 0.0}, step)
        time.sleep(0.4)
    began = time.monotonic()
    assert logger.catch_up(30)
    assert time.monotonic() - began < 3.5, "it rests for five seconds after a request of 0.2"
    logger.close()
    assert [record["sends"] for _, _, record in arrived(tmp_path)] == [1, 2, 2, 2]


def test_the_senders_of_a_run_start_one_after_another(tmp_path, backend):
    loggers = [backend(True, f"spool/{name}", opening=1.0) for name in "ab"]
    for logger in loggers:
        logger.log_metrics({"a": 0.0}, 0)
    assert all(logger.catch_up(30) for logger in loggers)
    for logger in loggers:
        logger.close()
    first, second = sorted(record["start"] for _, _, record in arrived(tmp_path))
    assert first[1] <= second[0]


def test_a_sender_that_never_gets_its_turn_starts_all_the_same(tmp_path, backend):
    logger = backend(True, "spool/a")
    logger.spool.folder.mkdir(parents=True)
    turn = Lock(logger.spool.folder.parent)
    logger.log_metrics({"a": 0.0}, 0)
    assert logger.catch_up(30)
    turn.release()
    logger.close()
    assert len(arrived(tmp_path)) == 1


def test_a_back_end_that_hangs_is_left_behind_after_four_seconds(tmp_path, backend, caplog):
    logger = backend(seconds=30.0)
    logger.log_metrics({"a": 1.0}, 1)
    began = time.monotonic()
    logger.close()
    assert 3 < time.monotonic() - began < 10
    assert "1 records of logger 'trial' have not arrived" in caplog.text
    assert logger.unsent == 1


def test_the_sender_ends_when_the_training_process_is_killed(tmp_path, backend):
    backend()  # writes the module
    code = f"""
    import sys, time
    sys.path.insert(0, {str(tmp_path)!r})
    from pathlib import Path
    from rlcore.spooling_logger import SpoolingLogger
    logger = SpoolingLogger("trial", "", Path({str(tmp_path / "spool")!r}), "module_of_backend:FileBackend",
                            {{"file": {str(tmp_path / "arrived")!r}}}, True)
    logger.log_metrics({{"a": 1.0}}, 1)
    assert logger.catch_up(30)
    print(logger._sender._process.pid, flush=True)
    time.sleep(60)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True) as training:
        sender = int(training.stdout.readline())
        training.send_signal(signal.SIGKILL)
    for _ in range(200):
        try:
            with open(f"/proc/{sender}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    break
        except FileNotFoundError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the sender goes on without the training process")
    assert not Spool(tmp_path / "spool").waiting
    assert len(arrived(tmp_path)) == 1


def test_a_damaged_note_of_what_was_sent_sends_everything_again(tmp_path, backend):
    logger = backend()
    logger.log_metrics({"a": 1.0}, 1)
    assert logger.catch_up(30)
    logger.close()
    (tmp_path / "spool" / "sent.json").write_text("{")
    assert Spool(tmp_path / "spool").count() == 1


@pytest.mark.parametrize("how", ["flush", "close"])
def test_what_was_appended_is_on_disk_after_a_flush_and_after_closing(tmp_path, how):
    spool = Spool(tmp_path)
    spool.append({"kind": "text", "name": "a", "text": "b", "step": 1})
    assert not (tmp_path / "records.jsonl").read_text()
    getattr(spool, how)()
    assert (tmp_path / "records.jsonl").read_text().endswith('"step": 1}\n')


def test_what_was_handed_over_and_not_confirmed_is_offered_again(tmp_path):
    spool = Spool(tmp_path)
    for step in (1, 2, 3):
        spool.append({"kind": "text", "name": "a", "text": "b", "step": step})
        _, offset = spool.read(1)
        spool.acknowledge(1, offset)
        if step == 1:
            spool.confirm(1)
    assert (spool.count(), spool.unconfirmed) == (0, 2)
    again = Spool(tmp_path)
    again.go_back()
    assert [record["step"] for record in again.read(10)[0]] == [2, 3]
    assert (again.count(), again.unconfirmed) == (2, 0)
