"""Rows E: loggers whose server, disk or code fails, and values that are none. The run is the one without loggers."""

from __future__ import annotations

import csv
import errno
import json
import logging
import math
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import torch
from rlcore_plugin_csv.logger import CSVLogger
from rlcore_plugin_mlflow.logger import MLFlowLogger
from rlcore_plugin_reports.curves import read_metrics
from rlcore_plugin_spool.spool import Spool
from rlcore_plugin_tensorboard.logger import TensorboardLogger
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.faults.disk import FailingDisk
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rlcore.errors import ConfigError
from rlcore.loggers import limits, metrics
from rlcore.loggers import values as log_values
from rlcore.loggers.metrics import Metrics
from rlcore.loggers.writer import LogWriter
from rlcore.types.progress import Every, Progress

STEPS = {0, 16, 32, 48, 64}
KEY = "0123456789" * 4


@pytest.fixture(autouse=True)
def _no_servers_of_the_caller(monkeypatch):
    for name in ("MLFLOW_TRACKING_URI", "WANDB_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_API_KEY", KEY)


def digests(run):
    """The hash of every component of the last checkpoint, apart from those that only watch."""
    manifest = run.trainer.parts.store.entries()[-1].manifest
    observers = run.trainer.parts.provenance.observers
    return {name: digest for name, digest in manifest["digests"].items() if name not in observers}


@pytest.fixture(scope="module")
def without_loggers(tmp_path_factory):
    """The digests of the run without loggers."""
    run = make_run(folder=tmp_path_factory.mktemp("plain"), sections={"logger": []})
    run.trainer.train()
    return digests(run)


def train(folder, *loggers):
    run = make_run(folder=folder, sections={"logger": list(loggers)})
    run.trainer.train()
    return run


def rows_of(file):
    with file.open(newline="") as stream:
        return [(int(row["frames"]), row["key"], float(row["value"])) for row in csv.DictReader(stream)]


# servers


class Answer(BaseHTTPRequestHandler):
    """Answers everything with the status of the server, or drops the connection."""

    def _answer(self):
        if self.server.status is None:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            self.connection.close()  # with a reset
            return
        self.send_error(self.server.status)

    def do_GET(self):
        self._answer()

    def do_POST(self):
        self._answer()

    def log_message(self, *arguments):
        pass


class DeadServer:
    """A server on this machine that is of no use, in one of five ways."""

    def __init__(self, fault):
        self._thread = self._server = self._socket = None
        if fault in ("refuses", "never answers"):
            self._socket = socket.create_server(("127.0.0.1", 0))
            port = self._socket.getsockname()[1]
            if fault == "refuses":
                self._socket.close()
        else:
            self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
            self._server.status = {"error 500": 500, "error 429": 429, "resets": None}[fault]
            self._server.handle_error = lambda *arguments: None
            self._thread = threading.Thread(target=self._server.serve_forever)
            self._thread.start()
            port = self._server.server_port
        self.url = f"http://127.0.0.1:{port}"

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._server is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
        else:
            self._socket.close()


FAULTS = ["refuses", "never answers", "error 500", "error 429", "resets"]


@pytest.mark.parametrize("fault", [FAULTS[0], *(pytest.param(fault, marks=pytest.mark.slow) for fault in FAULTS[1:])])
def test_e1_a_dead_server_changes_nothing_and_what_was_logged_waits_on_disk(tmp_path, fault, without_loggers):
    with DeadServer(fault) as server:
        began = time.monotonic()
        run = train(
            tmp_path,
            {"use": "csv"},
            {"use": "mlflow", "tracking_uri": server.url},
            {"use": "wandb", "base_url": server.url},
        )
        assert time.monotonic() - began < 30, "each could be waited for only at the end"
    assert digests(run) == without_loggers
    folder = tmp_path / "toy"
    written = {frames for frames, _, _ in rows_of(folder / "metrics.csv")}
    for name in ("mlflow", "wandb"):
        records = [json.loads(line) for line in (folder / "spool" / name / "records.jsonl").read_text().splitlines()]
        assert {record["step"] for record in records if record["kind"] == "metrics"} == written == STEPS
    assert {writer.name: writer.unsent for writer in run.trainer.metrics.writers}["mlflow"] == 6, (
        "five rows, the config"
    )
    assert not any("mlflow" in cause for cause in run.trainer.lost()), "what waits on disk is not lost"


def test_e1_a_required_logger_without_its_server_refuses_the_run(tmp_path):
    with DeadServer("refuses") as server, pytest.raises(ConfigError, match="required = true and cannot start"):
        train(tmp_path, {"use": "mlflow", "tracking_uri": server.url, "required": True})
    assert not (tmp_path / "toy").exists()


@pytest.mark.slow
def test_e1_what_waits_is_sent_later_each_record_once(tmp_path, cli, monkeypatch):
    uri = f"sqlite:///{tmp_path / 'later.db'}"
    with DeadServer("refuses") as server:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server.url)
        train(tmp_path, {"use": "mlflow"})
        outcome = cli("sync", tmp_path / "toy", "--seconds", "2")
        assert (outcome.code, "6 left" in outcome.out) == (1, True)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    for expected in ("mlflow: 6 records sent, 0 left", "mlflow: nothing waits, 6 records have arrived"):
        outcome = cli("sync", tmp_path / "toy")
        assert (outcome.code, expected in outcome.out) == (0, True), outcome.out + outcome.err
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    (tracked,) = client.search_runs([client.get_experiment_by_name("rlcore").experiment_id])
    history = client.get_metric_history(tracked.info.run_id, "progress/updates")
    assert [metric.step for metric in history] == [16, 32, 48, 64]


# code

BAD = """
import time

from rlcore import Component, hookimpl
from rlcore.loggers.base import LoggerBase


class Bad(LoggerBase):
    def __init__(self, config, context):
        if {build!r}:
            raise RuntimeError("broken from the start")
        super().__init__("bad")

    def log_metrics(self, metrics, step=None):
        {act}

    {names} = lambda self, *arguments, **keywords: self.log_metrics({{}}, 0)


@hookimpl
def provide_components():
    return [Component("logger", "bad", Bad)]
"""
ACTS = {
    "raises": 'raise RuntimeError("again and again")',
    "exits": "raise SystemExit(3)",
    "changes what it is given": "metrics.clear()",
    "returns nonsense": "return object()",
}


@pytest.mark.parametrize("act", ACTS)
def test_e2_a_logger_that_fails_is_switched_off_and_the_run_is_as_without(tmp_path, site, act, without_loggers):
    everything = "start = log_hparams = flush = state_dict = close = load_state_dict"
    names = everything if act in ("raises", "exits") else "start"
    site.add("rlcore-plugin-bad", "module_of_bad", BAD.format(build=False, act=ACTS[act], names=names))
    run = train(tmp_path, {"use": "bad"}, {"use": "csv"})
    assert digests(run) == without_loggers
    assert {frames for frames, _, _ in rows_of(tmp_path / "toy" / "metrics.csv")} == STEPS
    found = run.trainer.lost()
    if act in ("raises", "exits"):
        assert found["failures of logger bad"] >= 3
        assert found["writes left out by logger bad"] >= 1
    else:
        assert "failures of logger bad" not in found


def test_e2_a_logger_that_hangs_is_given_up(tmp_path, site, without_loggers, monkeypatch, caplog):
    monkeypatch.setattr(limits, "DEADLINE", 0.5)
    site.add("rlcore-plugin-bad", "module_of_bad", BAD.format(build=False, act="time.sleep(30)", names="start"))
    began = time.monotonic()
    run = train(tmp_path, {"use": "bad"}, {"use": "csv"})
    assert time.monotonic() - began < 15
    assert digests(run) == without_loggers
    assert "logger 'bad' did not answer" in caplog.text
    assert run.trainer.lost()["failures of logger bad"] == 3
    assert rows_of(tmp_path / "toy" / "metrics.csv")


def test_e2_a_logger_that_cannot_be_built_is_left_out_unless_it_is_required(tmp_path, site, without_loggers, caplog):
    site.add("rlcore-plugin-bad", "module_of_bad", BAD.format(build=True, act="pass", names="start"))
    run = train(tmp_path, {"use": "bad"})
    assert digests(run) == without_loggers
    assert "logger 'bad' failed: RuntimeError: broken from the start" in caplog.text
    before = set(threading.enumerate())
    with pytest.raises(ConfigError, match="broken from the start"):
        train(tmp_path / "required", {"use": "csv"}, {"use": "bad", "required": True})
    assert not [thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("log-")]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("place", ["metrics.csv", "tensorboard", "spool"])
def test_e3_a_disk_that_is_full_for_a_logger_is_not_so_for_checkpoints(tmp_path, place, error, without_loggers):
    loggers = [{"use": "csv"}, {"use": "tensorboard"}]
    if place == "spool":
        loggers.append({"use": "mlflow", "tracking_uri": "http://127.0.0.1:9"})
    folder = tmp_path / "toy"
    with FailingDisk(folder / place, error, at=1, lasting=True) as disk:
        run = train(tmp_path, *loggers)
    assert disk.failed
    assert digests(run) == without_loggers
    assert run.trainer.saver.failed == 0
    named = {"metrics.csv": "csv", "tensorboard": "tensorboard", "spool": "mlflow"}[place]
    lost = run.trainer.lost()
    assert f"failures of logger {named}" in lost
    assert not [cause for cause in lost if cause.startswith("failures of logger") and not cause.endswith(named)]


# values

NUMBERS = {
    "nan": (math.nan, math.nan),
    "inf": (math.inf, math.inf),
    "minus inf": (-math.inf, -math.inf),
    "minus zero": (-0.0, -0.0),
    "large": (1e308, 1e308),
    "bool": (True, 1.0),
    "numpy scalar": (np.float32(0.5), 0.5),
    "numpy bool": (np.bool_(True), 1.0),
    "zero-d": (torch.tensor(3), 3.0),
    "with grad": (torch.tensor([2.5], requires_grad=True), 2.5),
    "bfloat16": (torch.tensor(1.5, dtype=torch.bfloat16), 1.5),
    "big int": (10**400, math.inf),
    "negative big int": (-(10**400), -math.inf),
}
NO_NUMBERS = {"vector": np.zeros(3), "nothing": None, "text": "1.0", "list": [1.0], "complex": 1j}
KEYS = {
    "group/name": "group/name",
    "a space": "a space",
    "Größe": "Größe",
    "line\nbreak": "line break",
    "tab\tand\0zero": "tab and zero",
}


def same(left, right):
    return (math.isnan(left) and math.isnan(right)) or (
        left == right and math.copysign(1, left) == math.copysign(1, right)
    )


@pytest.mark.parametrize("kind", ["csv", "tensorboard", "spool"])
def test_e4_every_number_is_stored_as_it_is(tmp_path, kind):
    given = {name: value for name, (value, _) in NUMBERS.items()}
    if kind == "csv":
        logger = CSVLogger("trial", tmp_path)
    elif kind == "tensorboard":
        logger = TensorboardLogger("trial", tmp_path)
    else:  # both loggers that talk to servers are one class up to here
        logger = MLFlowLogger("trial", "http://127.0.0.1:9", spool=tmp_path / "trial", process=False)
    logger.log_metrics(given, 1)
    logger.flush()
    if kind == "csv":
        found = {key: value for _, key, value in rows_of(tmp_path / "trial" / "metrics.csv")}
    elif kind == "tensorboard":
        logger.close()
        events = EventAccumulator(str(tmp_path / "trial"))
        events.Reload()
        found = {tag: events.Scalars(tag)[0].value for tag in events.Tags()["scalars"]}
    else:
        text = (tmp_path / "trial" / "records.jsonl").read_text()
        assert "NaN" not in text
        assert "Infinity" not in text
        found = {key: float(value) for key, value in json.loads(text)["values"].items()}
    logger.close()
    single = {"large": math.inf} if kind == "tensorboard" else {}
    for name, (_, wanted) in NUMBERS.items():
        assert same(found[name], single.get(name, wanted)), f"{name} became {found[name]}"


def test_e4_numbers_that_are_not_finite_are_counted():
    watched = Metrics(Every(1))
    watched.add({"a": math.nan, "b": math.inf, "c": 1.0})
    watched.write(Progress(100, 10))
    assert watched.not_finite == 2


@pytest.mark.parametrize("name", NO_NUMBERS)
def test_e5_what_is_no_number_is_left_out_by_name(name, caplog):
    with caplog.at_level(logging.WARNING):
        assert log_values.row({name: NO_NUMBERS[name], "good": 1}) == {"good": 1.0}
    assert f"metric {name!r} is a" in caplog.text


def test_e5_keys_are_one_line_and_bounded_and_tables_have_a_slash():
    assert log_values.row(dict.fromkeys(KEYS, 1.0)) == dict.fromkeys(KEYS.values(), 1.0)
    assert log_values.row({"outer": {"inner": {"deep": 1}}}) == {"outer/inner/deep": 1.0}
    long = [log_values.name("x" * 10_000 + end) for end in "ab"]
    assert [len(name) for name in long] == [250, 250]
    assert long[0] != long[1]


def test_e6_a_run_with_endless_metric_names_stays_bounded(monkeypatch, caplog):
    monkeypatch.setattr(metrics, "MANY_NAMES", 100)
    monkeypatch.setattr(metrics, "MOST_NAMES", 300)
    watched = Metrics(Every(1))
    for number in range(1000):
        watched.add({f"step-{number}": 1.0, "good": float(number)})
        watched.write(Progress(10_000, number))
    assert len(watched.latest) <= 300
    assert watched.latest["good"] == 999.0
    assert watched.left_out == 1001 - 300
    assert caplog.text.count("there are more than 100 metric names") == 1


@pytest.mark.slow
def test_e6_a_million_rows_are_written_in_bounded_memory(tmp_path):
    import resource

    writer = LogWriter("csv", CSVLogger("trial", tmp_path))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for step in range(1_000_000):
        writer.write({"a": 1.0}, step)
        if step % 5_000 == 0:
            writer.drain()
    writer.close()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert (writer.failures, writer.left_out) == (0, 0)
    with (tmp_path / "trial" / "metrics.csv").open() as stream:
        assert sum(1 for _ in stream) == 1_000_001
    assert grown < 100_000, f"{grown} KiB more"


def test_e7_a_step_may_come_again_or_go_back(tmp_path):
    table, spooled = (
        CSVLogger("trial", tmp_path),
        MLFlowLogger("trial", f"sqlite:///{tmp_path / 'mlflow.db'}", spool=tmp_path / "spool", process=False),
    )
    for logger in (table, spooled):
        for step, value in ((5, 1.0), (5, 2.0), (3, 3.0)):
            logger.log_metrics({"a": value}, step)
    assert spooled.catch_up(60)
    for logger in (table, spooled):
        logger.close()
    from mlflow import MlflowClient

    history = MlflowClient(spooled.log_dir).get_metric_history(spooled.id, "a")
    expected = [(3, 3.0), (5, 1.0), (5, 2.0)]
    assert sorted((metric.step, metric.value) for metric in history) == expected
    assert sorted((step, value) for step, _, value in rows_of(tmp_path / "trial" / "metrics.csv")) == expected


def test_e8_a_row_that_a_kill_cut_off_is_passed_over_and_repaired(tmp_path):
    table = CSVLogger("trial", tmp_path)
    table.log_metrics({"a": 1.0}, 1)
    state = table.state_dict()
    table.close()
    file = tmp_path / "trial" / "metrics.csv"
    file.write_text(file.read_text() + "2,a,")
    assert read_metrics(tmp_path / "trial") == {"a": {1: 1.0}}
    resumed = CSVLogger("trial", tmp_path)
    resumed.load_state_dict(state)
    resumed.log_metrics({"a": 2.0}, 2)
    resumed.close()
    assert rows_of(file) == [(1, "a", 1.0), (2, "a", 2.0)]

    spool = Spool(tmp_path / "spool")
    spool.append({"kind": "metrics", "values": {"a": 1.0}, "step": 1})
    spool.close()
    file = tmp_path / "spool" / "records.jsonl"
    file.write_text(file.read_text() + '{"kind": "met')
    spool = Spool(tmp_path / "spool")
    assert [record["step"] for record in spool.read(10)[0]] == [1]
    spool.append({"kind": "metrics", "values": {"a": 2.0}, "step": 2})
    assert [record["step"] for record in spool.read(10)[0]] == [1, 2]
    spool.close()


def test_e8_events_that_a_kill_cut_off_are_passed_over_and_repaired(tmp_path):
    logger = TensorboardLogger("trial", tmp_path)
    logger.log_metrics({"a": 1.0}, 1)
    state = logger.state_dict()
    logger.log_metrics({"a": 2.0}, 2)
    logger.close()
    (file,) = (tmp_path / "trial").iterdir()
    file.write_bytes(file.read_bytes()[:-7])
    resumed = TensorboardLogger("trial", tmp_path)
    resumed.load_state_dict(state)
    resumed.log_metrics({"a": 3.0}, 2)
    resumed.close()
    events = EventAccumulator(str(tmp_path / "trial"))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("a")] == [(1, 1.0), (2, 3.0)]


def test_e9_a_slow_logger_does_not_delay_a_fast_one(tmp_path, site):
    site.add("rlcore-plugin-bad", "module_of_bad", BAD.format(build=False, act="time.sleep(0.2)", names="start"))
    run = make_run(folder=tmp_path, sections={"logger": [{"use": "bad"}, {"use": "csv"}]})
    slow, fast = run.trainer.metrics.writers
    for step in range(20):
        for writer in (slow, fast):
            writer.write({"a": 1.0}, step)
    fast.drain()
    assert len(rows_of(tmp_path / "toy" / "metrics.csv")) == 20
    assert slow._room._calls > 10, "the slow one is far behind"
    run.trainer.metrics.close()


@pytest.mark.parametrize("name", ["wandb", "mlflow", "tensorboard", "csv"])
def test_e10_a_logger_that_is_not_installed_is_refused_with_the_command(name, write_config, cli, monkeypatch):
    config = write_config(logger=[{"use": name}])
    monkeypatch.setenv("RLCORE_NO_PLUGINS", "1")
    outcome = cli("train", config)
    assert outcome.code == 2
    assert f"pip install rlcore-plugin-{name}" in outcome.err


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_e10_a_logger_without_its_library_is_refused_with_the_command(name, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(Exception, match=f"pip install {name}"):
        train(tmp_path, {"use": name})


def test_e11_media_beyond_the_room_are_left_out_and_counted(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(limits, "MEDIA_BYTES", 10_000)
    run = make_run(folder=tmp_path, sections={"logger": [{"use": "csv"}]})
    found = run.trainer.metrics
    found.log_video("huge", np.zeros((1, 10, 3, 64, 64), np.uint8), 1)
    found.log_image("small", np.zeros((1, 4, 4), np.uint8), 1)
    found.log_histogram("nan", torch.full((5,), math.nan), 1)
    found.log_histogram("far", [1e308, -1e308], 1)
    run.trainer.train()
    folder = tmp_path / "toy"
    assert [file.name for file in folder.rglob("*.png")] == ["000000000001.png"]
    assert not list(folder.rglob("*.gif"))
    assert run.trainer.lost() == {"writes left out by logger csv": 1}
    assert "logger 'csv' falls behind" in caplog.text
    with (folder / "histograms.csv").open(newline="") as stream:
        counted = {}
        for row in csv.DictReader(stream):
            counted[row["key"]] = counted.get(row["key"], 0) + int(row["count"])
    assert counted == {"nan": 5, "far": 2}
