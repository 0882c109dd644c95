"""The Weights & Biases logger: the contract of loggers in offline mode, read back from W&B's own files."""

import io
import json
import os
import random
import struct
import threading
import time

import numpy as np
import pytest
from rlcore_plugin_wandb.logger import WandbLogger
from wandb.proto import wandb_internal_pb2

from rlcore.errors import ConfigError, RlcoreError
from rlcore.testing import make_run
from rlcore.testing.contracts import PluginContract, SpoolingLoggerContract
from rlcore.testing.contracts.logger import frames_of
from rlcore.testing.contracts.spooling_logger import wait_until_sent

KEY = "0123456789" * 4


@pytest.fixture(autouse=True)
def no_key(monkeypatch, tmp_path):
    """No account of whoever runs the tests is used."""
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))


class TestPlugin(PluginContract):
    plugin = "wandb"


def records_of(file):
    """Yield the records of a `.wandb` file: blocks of 32 KiB with parts of records after checksum, length and type."""
    content, position, record = file.read_bytes(), 7, b""
    assert content.startswith(b":W&B")
    while position + 7 <= len(content):
        if (left := 2**15 - position % 2**15) < 7:
            position += left
            continue
        _, length, kind = struct.unpack("<IHB", content[position : position + 7])
        if kind == 0:
            return
        record += content[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield wandb_internal_pb2.Record.FromString(record)
            record = b""


def offline(folder):
    """Yield (folder of W&B, record) of every opening of a run, in order, once W&B's own process has written it all."""
    for place in sorted((folder / "wandb").glob("offline-run-*")):
        (file,) = place.glob("*.wandb")
        for _ in range(200):
            records = list(records_of(file))
            if records and records[-1].WhichOneof("record_type") == "exit":
                break
            time.sleep(0.05)
        yield from ((place, record) for record in records)


def id_of(place):
    """The id of the run that a folder of W&B belongs to."""
    return place.name.rpartition("-")[2]


def history(folder):
    """Yield (folder of W&B, row) of every row; a row is values by name."""
    for place, record in offline(folder):
        if record.WhichOneof("record_type") == "history":
            row = {}
            for item in record.history.item:
                row["/".join(item.nested_key) or item.key] = json.loads(item.value_json)
            yield place, row


def whole_rows(folder):
    """Yield (folder of W&B, step, name, value); what W&B nests under a name is one value."""
    for place, row in history(folder):
        step = row.pop("frames")
        values = {}
        for key, value in row.items():
            name, _, part = key.rpartition("/")
            if key.startswith("_"):
                continue
            if part in ("_type", "bins", "values", "path", "size", "sha256", "format", "width", "height"):
                values.setdefault(name, {})[part] = value
            else:
                values[key] = value
        yield from ((place, int(step), name, value) for name, value in values.items())


class TestWandb(SpoolingLoggerContract):
    use = "wandb"
    config = {"mode": "offline"}
    shows = frozenset({"histogram", "image", "video", "text"})

    def read_back(self, folder):
        (rows,) = self.read_runs(folder) or [[]]
        return rows

    def read_runs(self, folder):
        links = {}
        for place, record in offline(folder):
            if record.WhichOneof("record_type") == "config":
                updates = {update.key: json.loads(update.value_json) for update in record.config.update}
                links.setdefault(id_of(place), updates.get("continues"))
        runs = {}
        for place, step, name, value in whole_rows(folder):
            rows = runs.setdefault(id_of(place), {})
            if isinstance(value, int | float):
                assert name not in rows.setdefault(step, {}), f"{name} stands twice at {step}"
                rows[step][name] = float(value)
        order = sorted(runs, key=lambda run: links.get(run) is not None)  # folders of one second have no order
        assert [links.get(run) for run in order] == [None, *order][: len(order)]
        return [sorted((step, row) for step, row in runs[run].items() if row) for run in order]

    def read_media(self, folder):
        media = {}
        for place, step, name, value in whole_rows(folder):
            if isinstance(value, str):
                media["text", name, step] = value
            elif isinstance(value, dict) and value["_type"] == "histogram":
                media["histogram", name, step] = value["values"], value["bins"]
            elif isinstance(value, dict):
                frames = frames_of(io.BytesIO((place / "files" / value["path"]).read_bytes()))
                kind = {"video-file": "video", "image-file": "image"}[value["_type"]]
                media[kind, name, step] = frames if kind == "video" else frames[0]
        return media

    def read_hparams(self, folder):
        found = {}
        for _, record in offline(folder):
            if record.WhichOneof("record_type") == "config":
                found |= {update.key: json.loads(update.value_json) for update in record.config.update}
        return found

    def test_a_resume_is_the_same_run(self, tmp_path):
        logger = self.logger(tmp_path)
        logger.log_metrics({"a": 1.0}, 1)
        logger.start(wait=True)
        state = logger.state_dict()
        logger.close()
        resumed = self.logger(tmp_path)
        resumed.load_state_dict(state)
        resumed.log_metrics({"a": 2.0}, 2)
        resumed.close()
        self.settle(tmp_path)
        ids = [record.run.run_id for _, record in offline(tmp_path) if record.WhichOneof("record_type") == "run"]
        assert ids == [state["id"], state["id"]]

    def test_numbers_that_are_not_finite_are_kept(self, tmp_path):
        logger = self.logger(tmp_path)
        logger.log_metrics({"a": float("nan"), "b": float("-inf")}, 1)
        logger.close()
        self.settle(tmp_path)
        found = {name: value for _, _, name, value in whole_rows(tmp_path)}
        assert found["b"] == float("-inf")
        assert np.isnan(found["a"])

    def test_the_time_is_that_of_the_call(self, tmp_path):
        logger = self.logger(tmp_path)
        before = time.time()
        logger.spool.append({"kind": "metrics", "values": {"a": 1.0}, "step": 1, "time": before - 1000})
        logger.start()
        logger.close()
        self.settle(tmp_path)
        (row,) = [row for _, row in history(tmp_path)]
        assert row["_timestamp"] == pytest.approx(before - 1000)

    def test_needs_a_run_folder(self):
        with pytest.raises(ConfigError, match="run folder"):
            self.make(self.bench())


def test_a_key_is_a_reference_and_written_nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    section = {"use": "wandb", "mode": "offline", "api_key": {"env": "MY_KEY"}}
    make_run(folder=tmp_path, sections={"logger": [section]}).trainer.train()
    assert "MY_KEY" in (tmp_path / "toy" / "config.toml").read_text()
    assert wait_until_sent(tmp_path / "toy", 60)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any(file.suffix == ".wandb" for file in files)
    assert not [file for file in files if KEY.encode() in file.read_bytes()]


def test_a_key_that_is_not_set_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("MY_KEY", raising=False)
    section = {"use": "wandb", "api_key": {"env": "MY_KEY"}}
    with pytest.raises(ConfigError, match="environment variable 'MY_KEY'"):
        make_run(folder=tmp_path, sections={"logger": [section]})


def test_without_a_key_the_run_is_written_offline_and_nobody_is_asked(tmp_path, caplog):
    logger = WandbLogger("trial", save_dir=tmp_path, log_env_packages=False)
    logger.log_scalar("a", 1.0)
    assert logger.catch_up(60)
    logger.close()
    assert "no API key" in caplog.text
    assert [(step, name, value) for _, step, name, value in whole_rows(tmp_path)] == [(0, "a", 1.0)]
    assert logger.unsent == 1, "it was to go to a server"


def test_an_offline_run_that_ended_with_its_process_is_written_again(tmp_path, monkeypatch):
    monkeypatch.delenv("WANDB_SERVICE", raising=False)  # W&B's own process of other tests, which outlives this logger's
    logger = WandbLogger("trial", True, tmp_path, process=True, log_env_packages=False)
    for step in range(5):
        logger.log_scalar("a", float(step), step)
    logger.log_image("b", np.zeros((3, 4, 4), np.uint8), 5)
    assert logger.catch_up(60)
    (place,) = (tmp_path / "wandb").glob("offline-run-*")
    process = logger._sender._process
    process.kill()  # what W&B has not written is lost
    process.wait()
    logger.close()
    assert logger.unsent == 6
    again = WandbLogger("trial", True, tmp_path, spool=logger.spool.folder, log_env_packages=False)
    again.log_scalar("a", 6.0, 6)
    assert again.catch_up(60)
    again.close()
    assert again.unsent == 0
    found = [(step, name) for _, step, name, _ in whole_rows(tmp_path)]
    assert found == [*((step, "a") for step in range(5)), (5, "b"), (6, "a")]
    assert not place.exists()
    assert not list((tmp_path / "spool").rglob("*.png")), "kept until it was confirmed, and removed then"


def test_loggers_that_share_a_folder_leave_each_other_alone(tmp_path):
    first, second = (WandbLogger(name, True, tmp_path, log_env_packages=False) for name in ("one", "two"))
    first.log_scalar("a", 1.0, 1)
    assert first.catch_up(60)
    second.log_scalar("b", 2.0, 2)
    assert second.catch_up(60)
    for logger in (first, second):
        logger.close()
    found = {(step, name, value) for _, step, name, value in whole_rows(tmp_path)}
    assert found == {(1, "a", 1.0), (2, "b", 2.0)}


def test_a_logger_of_its_own(tmp_path):
    logger = WandbLogger("trial", True, tmp_path, "theid123", "games", tags=["one"])
    assert (logger.exp_name, logger.log_dir) == ("trial", str(tmp_path))
    assert (logger.experiment.id, logger.experiment.project, logger.experiment.tags) == ("theid123", "games", ("one",))
    logger.close()
    configs = [r.config.update for _, r in offline(tmp_path) if r.WhichOneof("record_type") == "config"]
    env = next(json.loads(update.value_json) for updates in configs for update in updates if update.key == "env")
    assert env["packages"]["wandb"]
    with pytest.raises(ConfigError, match="two names of one folder"):
        WandbLogger("trial", save_dir="a", log_dir="b")


def test_there_is_no_experiment_of_another_process(tmp_path):
    logger = WandbLogger("trial", True, tmp_path, process=True, log_env_packages=False)
    with pytest.raises(RlcoreError, match="process=False"):
        _ = logger.experiment
    logger.close()


@pytest.mark.parametrize("process", [True, False])
def test_the_global_generators_and_the_environment_are_left_alone(tmp_path, process):
    random.seed(1), np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].copy(), dict(os.environ), threading.excepthook
    logger = WandbLogger("trial", True, tmp_path, log_env_packages=False, process=process)
    logger.log_scalar("a", 1.0)
    assert logger.catch_up(60)
    logger.close()
    assert random.getstate() == before[0]
    assert np.array_equal(np.random.get_state()[1], before[1])
    changed = {name for name in {*os.environ, *before[2]} if os.environ.get(name) != before[2].get(name)}
    assert not changed, changed
