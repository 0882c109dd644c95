"""The MLflow logger: the contract of loggers with a database file, and a real server."""

import io
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
from mlflow import MlflowClient
from rlcore_plugin_mlflow.logger import MLFlowLogger

from rlcore.errors import ConfigError
from rlcore.restore.states import ResumeOptions
from rlcore.testing import make_run
from rlcore.testing.contracts import PluginContract, SpoolingLoggerContract
from rlcore.testing.contracts.logger import frames_of
from rlcore.testing.contracts.spooling_logger import wait_until_sent


@pytest.fixture(autouse=True)
def no_server(monkeypatch):
    """No server of whoever runs the tests is used."""
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_TOKEN"):
        monkeypatch.delenv(name, raising=False)


class TestPlugin(PluginContract):
    plugin = "mlflow"


class Tracked:
    """What MLflow's own client says of an experiment, and of its first run."""

    def __init__(self, uri, experiment="rlcore"):
        self.client = MlflowClient(uri)
        found = self.client.get_experiment_by_name(experiment)
        self.runs = self.client.search_runs([found.experiment_id], order_by=["start_time"]) if found else []
        self.run = self.runs[0] if self.runs else None

    def rows(self):
        assert len(self.runs) < 2, "a resume made another run"
        return self.rows_of(self.run)

    def rows_of(self, run):
        rows = {}
        for key in run.data.metrics if run else ():
            for metric in self.client.get_metric_history(run.info.run_id, key):
                assert key not in rows.setdefault(metric.step, {}), f"{key} stands twice at {metric.step}"
                rows[metric.step][key] = metric.value
        return sorted(rows.items())

    def files(self, path=""):
        for entry in self.client.list_artifacts(self.run.info.run_id, path or None):
            if entry.is_dir:
                yield from self.files(entry.path)
            else:
                yield entry.path

    def content(self, path, folder):
        folder.mkdir(exist_ok=True)
        with open(self.client.download_artifacts(self.run.info.run_id, path, str(folder)), "rb") as stream:
            return stream.read()

    def media(self, folder):
        media = {}
        for path in self.files():
            kind, _, name = path.partition("/")
            if not name:
                continue
            name, _, file = name.rpartition("/")
            content = self.content(path, folder)
            if kind == "histograms":
                read = json.loads(content)
                assert read["not_finite"] == 2
                shown = read["counts"], read["edges"]
            elif kind == "texts":
                shown = content.decode()
            else:
                frames = frames_of(io.BytesIO(content))
                shown = frames if kind == "videos" else frames[0]
            media[kind.removesuffix("s"), name, int(file.split(".")[0])] = shown
        return media


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory):
    """A database with its tables; making those takes seconds."""
    file = tmp_path_factory.mktemp("empty") / "mlflow.db"
    MlflowClient(f"sqlite:///{file}").search_experiments()
    return file.read_bytes()


class TestMLflow(SpoolingLoggerContract):
    use = "mlflow"
    shows = frozenset({"histogram", "image", "video", "text"})

    @pytest.fixture(autouse=True)
    def run_folder(self, tmp_path, empty_database):
        """A run folder beside which the tables are made already."""
        (tmp_path / "mlflow.db").write_bytes(empty_database)
        self.folder = tmp_path / "run"
        self.folder.mkdir()

    def logger(self, folder):
        return super().logger(self.folder)

    def settle(self, folder):
        super().settle(self.folder)

    def read_stored(self, folder):
        return super().read_stored(self.folder)

    def tracked(self):
        return Tracked(f"sqlite:///{self.folder.parent / 'mlflow.db'}")

    def read_back(self, folder):
        return self.tracked().rows()

    def read_runs(self, folder):
        tracked = self.tracked()
        for before, run in itertools.pairwise(tracked.runs):
            assert run.data.tags["mlflow.parentRunId"] == before.info.run_id
        return [tracked.rows_of(run) for run in tracked.runs]

    def read_media(self, folder):
        return self.tracked().media(folder / "downloaded")

    def read_hparams(self, folder):
        tracked = self.tracked()
        assert tracked.run.data.params["hook.0.use"] == "a:b"
        assert tracked.run.data.params["run.seed"] == "1"
        return json.loads(tracked.content("config.json", folder / "downloaded"))

    def test_names_that_mlflow_refuses_are_changed(self, tmp_path):
        logger = self.logger(tmp_path)
        logger.log_metrics({"a,b": 1.0, "../up": 2.0, "Größe (m)": 3.0, "line\nbreak": 4.0, "x" * 300: 5.0}, 1)
        logger.close()
        self.settle(tmp_path)
        ((step, row),) = self.read_back(tmp_path)
        long = next(key for key in row if key.startswith("xxx"))
        assert (step, len(long), row.pop(long)) == (1, 250, 5.0)
        assert row == {"a_b": 1.0, "_/up": 2.0, "Größe _m_": 3.0, "line break": 4.0}

    def test_a_config_that_changed_is_shown_again(self, tmp_path):
        logger = self.logger(tmp_path)
        logger.log_hparams({"run": {"total_frames": 1}})
        state = logger.state_dict()
        logger.close()
        resumed = self.logger(tmp_path)
        resumed.load_state_dict(state)
        resumed.log_hparams({"run": {"total_frames": 2, "seed": 5}})
        resumed.close()
        self.settle(tmp_path)
        tracked = self.tracked()
        assert tracked.run.data.params == {"run.total_frames": "1", "run.seed": "5"}, "MLflow changes no parameter"
        found = json.loads(tracked.content("config.json", tmp_path / "downloaded"))
        assert found == {"run": {"total_frames": 2, "seed": 5}}

    def test_what_arrived_before_the_answer_was_lost_is_not_sent_again(self, tmp_path):
        logger = self.logger(tmp_path)
        logger.log_metrics({"a": 1.0}, 1)
        logger.log_metrics({"a": 2.0}, 2)
        assert logger.catch_up(60)
        logger.close()
        logger.spool.refresh()
        sent = logger.spool.sent
        sent.offset, sent.id = 0, ""  # neither the answer nor the id of the run came back
        logger.spool.write_sent()
        again = self.logger(tmp_path)
        again.log_metrics({"a": 3.0}, 3)
        again.close()
        self.settle(tmp_path)
        assert self.read_back(tmp_path) == [(1, {"a": 1.0}), (2, {"a": 2.0}), (3, {"a": 3.0})]

    def test_the_run_is_finished_at_the_end_and_bears_its_name_and_tags(self, tmp_path):
        context = self.bench(folder=self.folder)
        logger = self.make(context, tags={"team": "red"})
        logger.log_metrics({"a": 1.0}, 1)
        logger.close()
        self.settle(tmp_path)
        run = self.tracked().run
        assert (run.info.status, run.info.run_name, run.data.tags["team"]) == ("FINISHED", "toy", "red")

    def test_a_run_is_found_again_by_the_tag_that_every_version_has_written(self, tmp_path):
        logger = self.make(self.bench(folder=self.folder))
        logger.log_metrics({"a": 1.0}, 1)
        logger.close()
        self.settle(tmp_path)
        assert self.tracked().run.data.tags["rlcore.spool"] == logger.spool.sent.token

    def test_needs_a_run_folder(self):
        with pytest.raises(ConfigError, match="run folder"):
            self.make(self.bench())

    def test_an_address_with_a_password_is_refused(self):
        with pytest.raises(ValueError, match="set MLFLOW_TRACKING_URI"):
            self.settings(tracking_uri="https://me:secret@example.org")


# a server


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


class Server:
    """A real `mlflow server` on this machine alone."""

    def __init__(self, folder, port):
        self.uri = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
        command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{folder / 'server.db'}"]
        command += ["--artifacts-destination", str(folder / "artifacts")]
        with (folder / "server.log").open("a") as output:
            self.process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output, start_new_session=True)

    def wait(self):
        for _ in range(1200):
            try:
                with urllib.request.urlopen(f"{self.uri}/health", timeout=5):
                    return self
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                assert self.process.poll() is None, "the server has ended"
                time.sleep(0.1)
        raise AssertionError("the server does not answer")

    def stop(self):
        """End the server with its workers."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture
def server(tmp_path, empty_database):
    (tmp_path / "server.db").write_bytes(empty_database)
    server = Server(tmp_path, free_port())
    yield server.wait()
    server.stop()


@pytest.mark.slow
def test_a_run_is_told_to_a_server(server, tmp_path):
    section = {"use": "mlflow", "tracking_uri": server.uri, "experiment": "games", "required": True}
    run = make_run(folder=tmp_path / "runs", sections={"logger": [section]})
    pixels = np.full((1, 2, 1, 4, 4), 85, np.uint8)
    pixels[:, 1] = 170
    run.trainer.metrics.log_video("evaluation/video", pixels, 0)
    run.trainer.train()
    (writer,) = run.trainer.metrics.writers
    assert writer.failures == 0
    assert wait_until_sent(tmp_path / "runs" / "toy", 60)
    tracked = Tracked(server.uri, "games")
    assert [step for step, _ in tracked.rows()] == [0, 16, 32, 48, 64]
    assert tracked.run.data.params["run.total_frames"] == "64"
    media = tracked.media(tmp_path / "downloaded")
    assert np.array_equal(media["video", "evaluation/video", 0], np.repeat(pixels[0].transpose(0, 2, 3, 1), 3, axis=-1))


@pytest.mark.slow
def test_what_was_logged_while_the_server_was_down_is_sent_when_it_is_back(tmp_path, empty_database, caplog):
    (tmp_path / "server.db").write_bytes(empty_database)
    port = free_port()
    first = Server(tmp_path, port).wait()
    logger = MLFlowLogger("games", first.uri, spool=tmp_path / "spool")
    try:
        logger.log_scalar("a", 1.0, 1)
        assert logger.catch_up(60)
        first.stop()
        began = time.monotonic()
        for step in range(2, 6):
            logger.log_scalar("a", float(step), step)
        logger.flush()
        assert time.monotonic() - began < 1
        deadline = time.monotonic() + 60
        while not logger.error and time.monotonic() < deadline:
            time.sleep(0.1)
        assert logger.unsent == 4
        assert "what is logged waits on disk" in caplog.text
        second = Server(tmp_path, port).wait()
        try:
            assert logger.catch_up(60)
            assert "is connected again" in caplog.text
            logger.close()
            rows = Tracked(second.uri, "games").rows()
        finally:
            second.stop()
    finally:
        first.stop()
    assert rows == [(step, {"a": float(step)}) for step in range(1, 6)]


def test_a_required_logger_without_its_server_stops_the_run_before_it_begins(tmp_path):
    section = {"use": "mlflow", "tracking_uri": f"http://127.0.0.1:{free_port()}", "required": True}
    with pytest.raises(ConfigError, match="logger 'mlflow' says required = true and cannot start"):
        make_run(folder=tmp_path, sections={"logger": [section]})
    assert not (tmp_path / "toy").exists()


def test_a_resume_with_another_config_is_a_run_below_the_one_before(tmp_path, empty_database):
    (tmp_path / "mlflow.db").write_bytes(empty_database)
    sections = {"logger": [{"use": "mlflow"}], "checkpoint": {"use": "testing:toy", "every": 32, "keep_best": False}}
    make_run(folder=tmp_path, sections=sections).trainer.train()
    assert wait_until_sent(tmp_path / "toy", 60)
    checkpoints = sorted((tmp_path / "toy" / "checkpoints").glob("[0-9]*"))
    shutil.rmtree(checkpoints[-1])  # the run goes back behind what it sent
    options = ResumeOptions(accept_changes=True)
    make_run("optimizer.0.lr=0.5", folder=tmp_path, sections=sections, resume=options).trainer.train()
    assert wait_until_sent(tmp_path / "toy", 60)
    tracked = Tracked(f"sqlite:///{tmp_path / 'mlflow.db'}")
    before, after = tracked.runs
    assert after.data.tags["mlflow.parentRunId"] == before.info.run_id
    assert [step for step, _ in tracked.rows_of(before)] == [0, 16, 32, 48, 64]
    assert [step for step, _ in tracked.rows_of(after)] == [48, 64]
    assert [run.data.params["optimizer.adam.lr"] for run in tracked.runs] == ["0.01", "0.5"]


def test_a_logger_of_its_own(tmp_path, empty_database):
    (tmp_path / "mlflow.db").write_bytes(empty_database)
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    logger = MLFlowLogger("games", uri, {"team": "red"}, spool=tmp_path / "spool")
    assert (logger.exp_name, logger.log_dir) == ("games", uri)
    assert logger.experiment.data.tags["team"] == "red"
    logger.log_scalar("a", 1.0)
    assert logger.catch_up(60)
    logger.close()
    assert Tracked(uri, "games").rows() == [(0, {"a": 1.0})]


def test_a_token_is_a_reference_and_written_nowhere(tmp_path, empty_database, monkeypatch):
    (tmp_path / "mlflow.db").write_bytes(empty_database)
    monkeypatch.setenv("MY_TOKEN", "a-secret-of-mine")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "")
    section = {"use": "mlflow", "token": {"env": "MY_TOKEN"}}
    make_run(folder=tmp_path, sections={"logger": [section]}).trainer.train()
    assert os.environ["MLFLOW_TRACKING_TOKEN"] == ""
    assert wait_until_sent(tmp_path / "toy", 60)
    assert Tracked(f"sqlite:///{tmp_path / 'mlflow.db'}").rows()
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert not [file for file in files if b"a-secret-of-mine" in file.read_bytes()]


def test_the_global_generators_are_left_alone(tmp_path, empty_database):
    (tmp_path / "mlflow.db").write_bytes(empty_database)
    random.seed(1), np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].copy(), dict(os.environ)
    logger = MLFlowLogger("games", f"sqlite:///{tmp_path / 'mlflow.db'}", spool=tmp_path / "spool")
    logger.log_scalar("a", 1.0)
    assert logger.catch_up(60)
    logger.close()
    assert random.getstate() == before[0]
    assert np.array_equal(np.random.get_state()[1], before[1])
    assert dict(os.environ) == before[2]
