"""A logger that spools: what is sent, in which process, and what becomes of it when something ends."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import asdict

import numpy as np
import pytest
from rlcore_plugin_spool import sender as spool_sender
from rlcore_plugin_spool.logger import SpoolingLogger
from rlcore_plugin_spool.sender import lock_spool
from rlcore_plugin_spool.spool import Spool
from rlcore_plugin_testing.faults.disk import FailingDisk

from rlcore.errors import RlcoreError, StorageError
from rlcore.files.lock import Lock

SERVER = """
import json, os, random, time
from pathlib import Path


class FileServer:
    # appends what it is sent to a file; each line with the number of the process
    def __init__(self, file, fails=0, seconds=0.0, opening=0.0, refuses=None):
        self.refuses = refuses
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
        if any(self.refuses in (-1, record.get("step", 0)) for record in records):
            raise ValueError("not this one")
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
def make(tmp_path, monkeypatch):
    """Make loggers of a server that writes into a file; it is imported by name, also in another process."""
    (tmp_path / "module_of_server.py").write_text(SERVER)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda process=False, name="spool", **arguments: SpoolingLogger(
        "trial",
        "nowhere",
        tmp_path,
        "module_of_server:FileServer",
        {"file": str(tmp_path / "arrived"), **arguments},
        process,
        tmp_path / name,
    )
    sys.modules.pop("module_of_server", None)


def arrived(tmp_path):
    """The records in the file, without the lines that end a run."""
    lines = (tmp_path / "arrived").read_text().splitlines()
    return [json.loads(line) for line in lines if line != "end"]


@pytest.mark.parametrize("process", [True, False])
def test_everything_arrives_in_order_and_the_run_is_ended(tmp_path, make, process):
    import os

    logger = make(process)
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


def test_a_step_may_be_a_number_of_numpy(tmp_path, make):
    logger = make()
    logger.log_metrics({"a": 1.0}, np.int64(3))
    logger.log_scalar("b", 1.0, step=np.array(4))
    assert logger.catch_up(30)
    logger.close()
    assert [record["step"] for _, _, record in arrived(tmp_path)] == [3, 4]
    assert logger.spool.count_set_aside() == 0


@pytest.mark.parametrize("process", [True, False])
def test_a_server_that_fails_at_first_is_tried_again_and_both_is_said(tmp_path, make, process, caplog):
    logger = make(process, fails=2)
    logger.log_metrics({"a": 1.0}, 1)
    with pytest.raises(RlcoreError, match="ConnectionError: nobody there"):
        logger.start(wait=True)
    assert logger.catch_up(30)
    logger.close()
    assert len(arrived(tmp_path)) == 1
    assert caplog.text.count("ConnectionError: nobody there; what is logged waits on disk") == 1
    assert "is connected again" in caplog.text
    assert logger.error == ""


def test_a_resume_leaves_out_what_was_sent_and_sends_the_rest(tmp_path, make):
    logger = make()
    for step in (1, 2):
        logger.log_metrics({"a": float(step)}, step)
    state = logger.state_dict()
    logger.log_metrics({"a": 3.0}, 3)
    assert logger.catch_up(30)
    logger.close()
    resumed = make()
    resumed.load_state_dict(state)
    assert resumed.unsent == 0
    for step in (3, 4):
        resumed.log_metrics({"a": float(step)}, step)
    assert resumed.catch_up(30)
    assert resumed.unsent == 0
    resumed.close()
    assert [record["step"] for _, _, record in arrived(tmp_path)] == [1, 2, 3, 4]


def test_a_resume_sends_what_was_cut_off_within_a_step(tmp_path, make):
    logger = make()
    state = logger.state_dict()
    logger.log_metrics({"a": 1.0}, 1)
    assert logger.catch_up(30)
    logger.close()
    resumed = make()
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


def test_what_came_a_second_time_may_come_a_third(tmp_path, make):
    state = None
    for _ in range(3):  # the second and third time go back to the beginning
        logger = make()
        state = state or logger.state_dict()
        logger.load_state_dict(state)
        for step in (1, 2):
            logger.log_metrics({"a": float(step)}, step)
        assert logger.catch_up(30)
        logger.close()
    assert [record["step"] for _, _, record in arrived(tmp_path)] == [1, 2]


def test_another_training_goes_on_in_a_run_of_its_own_until_it_is_contacted_and_after(tmp_path, make):
    first = make()
    first.log_metrics({"a": 1.0}, 1)
    assert first.catch_up(30)
    state = first.state_dict()
    first.log_metrics({"a": 2.0}, 2)
    assert first.catch_up(30)
    first.close()
    unlucky = make()
    unlucky.load_state_dict(state)
    unlucky.branch()  # and it is killed before the new run is made
    assert unlucky.id == ""
    second = make()
    second.load_state_dict(state)
    second.log_metrics({"a": 20.0}, 2)
    assert second.catch_up(30)
    second.close()
    third = make()  # the same training again: the same run
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


def test_the_id_of_a_run_outlives_its_spool(tmp_path, make):
    logger = make()
    logger.start(wait=True)
    state = logger.state_dict()
    logger.close()
    elsewhere = make(name="another")
    elsewhere.load_state_dict(state)
    elsewhere.start(wait=True)
    assert elsewhere.id == state["id"] != ""
    elsewhere.close()


@pytest.mark.parametrize("process", [True, False])
def test_what_comes_soon_after_is_sent_together_and_not_waited_for_when_there_is_hurry(tmp_path, make, process):
    logger = make(process, seconds=0.2)
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


def test_the_senders_of_a_run_start_one_after_another(tmp_path, make):
    loggers = [make(True, f"spool/{name}", opening=1.0) for name in "ab"]
    for logger in loggers:
        logger.log_metrics({"a": 0.0}, 0)
    assert all(logger.catch_up(30) for logger in loggers)
    for logger in loggers:
        logger.close()
    first, second = sorted(record["start"] for _, _, record in arrived(tmp_path))
    assert first[1] <= second[0]


@pytest.mark.slow
def test_a_sender_that_never_gets_its_turn_starts_all_the_same(tmp_path, make):
    logger = make(True, "spool/a")
    logger.spool.folder.mkdir(parents=True)
    turn = Lock(logger.spool.folder.parent)
    logger.log_metrics({"a": 0.0}, 0)
    assert logger.catch_up(30)
    turn.release()
    logger.close()
    assert len(arrived(tmp_path)) == 1


def test_a_server_that_hangs_is_left_behind_in_bounded_time(tmp_path, make, caplog, monkeypatch):
    monkeypatch.setattr("rlcore_plugin_spool.logger.CLOSING", 2.0)
    logger = make(seconds=30.0)
    logger.log_metrics({"a": 1.0}, 1)
    began = time.monotonic()
    logger.close()
    assert 1.5 < time.monotonic() - began < 6
    assert "1 records of logger 'trial' have not arrived, as far as is known; they wait in" in caplog.text
    assert logger.unsent == 1


def test_the_end_of_a_short_run_waits_for_a_sender_that_is_still_starting(tmp_path, make, caplog):
    logger = make(True, "runs/short run/spool/mlflow", opening=5.0)  # as long as an import on a busy machine
    logger.log_metrics({"a": 1.0}, 1)
    logger.close()
    assert logger.unsent == 0
    assert caplog.text == ""


def test_what_is_said_of_records_on_their_way_is_true(tmp_path, make, caplog, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rlcore_plugin_spool.logger.CLOSING", 1.0)
    logger = make(True, "runs/short run/spool/mlflow", opening=3.0)
    logger.log_metrics({"a": 1.0}, 1)
    logger.close()
    assert "1 records of logger 'mlflow' have not arrived yet, and a process sends them for 60 s more" in caplog.text
    assert "`rlcore sync 'runs/short run'` sends what is missing" in caplog.text
    lock_spool(logger.spool.folder, 30).release()  # the process is done
    assert logger.unsent == 0
    assert len(arrived(tmp_path)) == 1


def test_that_nobody_hears_a_sender_any_more_is_no_error_of_it(tmp_path, make):
    make()  # writes the module
    code = f"""
    import sys
    sys.path.insert(0, {str(tmp_path)!r})
    from pathlib import Path
    from rlcore_plugin_spool import logger
    logger.CLOSING = 0.5
    logger = logger.SpoolingLogger("trial", "", Path(), "module_of_server:FileServer",
                                   {{"file": {str(tmp_path / "arrived")!r}, "opening": 4.0}}, True,
                                   Path({str(tmp_path / "spool")!r}))
    logger.log_metrics({{"a": 1.0}}, 1)
    logger.close()
    print(logger.unsent, flush=True)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1", "it ended before its sender"
    lock_spool(tmp_path / "spool", 30).release()
    time.sleep(1)  # until the process is gone
    assert len(arrived(tmp_path)) == 1
    assert (tmp_path / "spool" / "sender.log").read_text() == ""


def test_the_sender_ends_when_the_training_process_is_killed(tmp_path, make):
    make()  # writes the module
    code = f"""
    import sys, time
    sys.path.insert(0, {str(tmp_path)!r})
    from pathlib import Path
    from rlcore_plugin_spool.logger import SpoolingLogger
    logger = SpoolingLogger("trial", "", Path(), "module_of_server:FileServer",
                            {{"file": {str(tmp_path / "arrived")!r}}}, True, Path({str(tmp_path / "spool")!r}))
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


@pytest.fixture
def sent_spool(tmp_path, make):
    """The folder of a spool of three records that were sent."""
    logger = make()
    for step in (1, 2, 3):
        logger.log_metrics({"a": float(step)}, step)
    assert logger.catch_up(30)
    logger.close()
    return tmp_path / "spool"


@pytest.mark.parametrize("damage", ["{", "", "[]", '{"offset": 3}', None])
def test_a_damaged_note_of_what_was_sent_is_said_and_its_copy_counts(sent_spool, caplog, damage):
    file = sent_spool / "sent.json"
    if damage is None:  # one digit is another
        damage = file.read_text().replace('"records": 3', '"records": 1')
    file.write_text(damage)
    assert Spool(sent_spool).count() == 0, "nothing is sent twice"
    assert "sent.json is damaged" in caplog.text


def test_a_note_that_is_damaged_twice_lets_all_go_into_a_new_run_aloud(sent_spool, caplog):
    token = Spool(sent_spool).sent.token
    for name in ("sent.json", "sent-copy.json"):
        (sent_spool / name).write_text("{")
    spool = Spool(sent_spool)
    assert (spool.count(), spool.sent.id) == (3, "")
    assert spool.sent.token != token
    assert "all of it goes into a new run" in caplog.text


def test_a_place_beyond_the_records_is_said_and_nothing_is_counted_that_is_not_there(sent_spool, caplog):
    note = {**asdict(Spool(sent_spool).sent), "offset": 1_000_000_000, "records": 999_999_985}
    for name in ("sent.json", "sent-copy.json"):
        (sent_spool / name).write_text(json.dumps(note))  # as before there were checksums
    spool = Spool(sent_spool)
    assert (spool.count(), spool.unconfirmed, spool.sent.records) == (0, 0, 3)
    assert "says that 1000000000 bytes were sent, and there are" in caplog.text


def test_a_note_without_a_checksum_is_read_as_before(sent_spool, caplog):
    note = asdict(Spool(sent_spool).sent)
    (sent_spool / "sent.json").write_text(json.dumps(note))
    (sent_spool / "sent-copy.json").unlink()
    assert asdict(Spool(sent_spool).sent) == note
    assert not caplog.text


BAD_RECORDS = {
    "no json": "{",
    "no utf-8": "\udcff",
    "a list": "[]",
    "deep": "[" * 100_000,
    "no kind": "{}",
    "unknown kind": '{"kind": "hologram", "step": 2, "time": 1.0}',
    "no step": '{"kind": "metrics", "values": {"a": 2.0}, "time": 1.0}',
    "text for a number": '{"kind": "metrics", "values": {"a": "two"}, "step": 2, "time": 1.0}',
    "file above": '{"kind": "image", "name": "a", "file": "images/../../secret", "step": 2, "time": 1.0}',
    "file elsewhere": '{"kind": "image", "name": "a", "file": "SECRET", "step": 2, "time": 1.0}',
    "note as file": '{"kind": "image", "name": "a", "file": "sent.json", "step": 2, "time": 1.0}',
    "file gone": '{"kind": "image", "name": "a", "file": "images/none.png", "step": 2, "time": 1.0}',
    "link": '{"kind": "image", "name": "a", "file": "images/link.png", "step": 2, "time": 1.0}',
    "hard link": '{"kind": "image", "name": "a", "file": "images/hard.png", "step": 2, "time": 1.0}',
}


@pytest.mark.parametrize("name", BAD_RECORDS)
def test_a_record_that_cannot_be_is_set_aside_and_the_next_ones_are_sent(tmp_path, make, caplog, name):
    secret = tmp_path / "secret"
    secret.write_text("nobody's business")
    folder = tmp_path / "spool"
    (folder / "images").mkdir(parents=True)
    (folder / "images" / "link.png").symlink_to(secret)
    os.link(secret, folder / "images" / "hard.png")
    lines = [json.dumps({"kind": "metrics", "values": {"a": 1.0}, "step": step, "time": 1.0}) for step in (1, 3)]
    lines.insert(1, BAD_RECORDS[name].replace("SECRET", str(secret)))
    (folder / "records.jsonl").write_bytes("".join(line + "\n" for line in lines).encode(errors="surrogateescape"))
    logger = make()
    assert logger.catch_up(30)
    assert logger.unsent == 0
    logger.close()
    assert [record["step"] for _, _, record in arrived(tmp_path)] == [1, 3]
    assert "a record cannot be sent and is set aside" in caplog.text
    (aside,) = (folder / "set-aside.jsonl").read_text().splitlines()
    assert json.loads(aside)["reason"]
    assert secret.read_text() == "nobody's business"


def test_a_record_that_the_server_refuses_is_set_aside_when_it_takes_others(tmp_path, make, caplog):
    logger = make(refuses=2)
    for step in (1, 2, 3):
        logger.log_metrics({"a": float(step)}, step)
    assert logger.catch_up(60)
    logger.close()
    assert [record["step"] for _, _, record in arrived(tmp_path)] == [1, 3]
    assert "the server refuses it: ValueError: not this one" in caplog.text


def test_a_server_that_takes_nothing_lets_nothing_be_set_aside(tmp_path, make, monkeypatch):
    monkeypatch.setattr(spool_sender, "_FIRST_PAUSE", 0.01)
    logger = make(refuses=-1)
    for step in (1, 2, 3):
        logger.log_metrics({"a": float(step)}, step)
    assert not logger.catch_up(1.5)
    logger.close()
    assert logger.unsent == 3
    assert not (tmp_path / "spool" / "set-aside.jsonl").exists()


def test_records_that_the_disk_refuses_for_a_while_are_kept_and_written_once(tmp_path):
    spool = Spool(tmp_path / "spool")
    spool.append({"kind": "text", "name": "a", "text": "b" * 100, "step": 1})
    with (
        FailingDisk(tmp_path, errno.ENOSPC, at=1, lasting=True, operations={"write"}),
        pytest.raises(OSError, match="space"),
    ):
        spool.flush()
    spool.append({"kind": "text", "name": "a", "text": "b", "step": 2})
    spool.close()
    assert [record["step"] for record in Spool(tmp_path / "spool").read(10)[0]] == [1, 2]


@pytest.mark.parametrize("operation", ["write", "replace"])
def test_a_note_that_a_full_disk_refuses_leaves_nothing_beside_the_one_before(tmp_path, operation):
    spool = Spool(tmp_path)
    spool.write_sent()
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    spool.sent.id = "another"
    with (
        FailingDisk(tmp_path, errno.ENOSPC, at=1, lasting=True, operations={operation}),
        pytest.raises(OSError, match="space"),
    ):
        spool.write_sent()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_spool_that_was_changed_before_the_checkpoint_is_said_at_the_resume(tmp_path, make, caplog):
    logger = make(fails=1000)
    for step in (1, 2):
        logger.log_metrics({"a": float(step)}, step)
    state = logger.state_dict()
    logger.close()
    file = tmp_path / "spool" / "records.jsonl"
    file.write_text(file.read_text().replace("1.0", "7.0"))
    resumed = make(fails=1000)
    resumed.load_state_dict(state)
    assert resumed.differences == 1
    assert "records.jsonl is not what it was at the checkpoint" in caplog.text


# spools of scripts


def owned(tmp_path, name="trial"):
    arguments = {"file": str(tmp_path / "arrived")}
    return SpoolingLogger(name, "nowhere", tmp_path, "module_of_server:FileServer", arguments, process=False)


def test_loggers_of_one_name_have_spools_and_runs_of_their_own(tmp_path, make):
    loggers = [owned(tmp_path, name) for name in ("trial", "trial", "../trial/a")]
    for number, logger in enumerate(loggers):
        logger.log_metrics({"a": float(number)}, number)
    for logger in loggers:
        assert logger.catch_up(30)
        logger.close()
    assert len({logger.spool.folder for logger in loggers}) == len({logger.id for logger in loggers}) == 3
    assert {logger.spool.folder.parent for logger in loggers} == {tmp_path / "spool"}
    assert sorted(record["step"] for _, _, record in arrived(tmp_path)) == [0, 1, 2]


def test_a_resume_returns_to_the_spool_and_the_run_of_its_checkpoint(tmp_path, make):
    first, other = owned(tmp_path), owned(tmp_path)
    for logger in (first, other):
        logger.log_metrics({"a": 1.0}, 1)
        assert logger.catch_up(30)
    state = first.state_dict()
    for logger in (first, other):
        logger.close()
    resumed = owned(tmp_path)
    resumed.start()  # as a trainer of a script does before it loads
    resumed.load_state_dict(state)
    resumed.log_metrics({"a": 2.0}, 2)
    assert resumed.catch_up(30)
    resumed.close()
    assert (resumed.id, resumed.spool.folder) == (first.id, first.spool.folder)
    assert {record["run"][1] for _, _, record in arrived(tmp_path) if record["step"] == 2} == {first.spool.sent.token}
    assert len(list((tmp_path / "spool").glob("trial*"))) == 2, "the one that was not needed was never made"


def test_a_state_that_names_a_spool_elsewhere_is_refused(tmp_path, make):
    (tmp_path / "elsewhere").mkdir()
    logger = owned(tmp_path)
    for name in ("../elsewhere", str(tmp_path / "elsewhere")):
        with pytest.raises(StorageError):
            logger.load_state_dict({"size": 0, "id": "", "spool": name})


@pytest.mark.parametrize("how", ["flush", "close"])
def test_what_was_appended_is_on_disk_after_a_flush_and_after_closing(tmp_path, how):
    spool = Spool(tmp_path)
    spool.append({"kind": "text", "name": "a", "text": "b", "step": 1})
    assert not (tmp_path / "records.jsonl").exists()
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
