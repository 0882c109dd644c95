"""The MLflow logger: a real server, resumes, tokens, and loggers without a config."""

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
from rlcore_plugin_mlflow.logger import MLFlowLogger
from rlcore_plugin_spool.contracts import wait_until_sent
from rlcore_plugin_testing import make_run

from rlcore.errors import ConfigError
from rlcore.run.asked import ResumeOptions

from .reading import Tracked


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


@pytest.mark.slow
def test_a_required_logger_without_its_server_stops_the_run_before_it_begins(tmp_path):
    section = {"use": "mlflow", "tracking_uri": f"http://127.0.0.1:{free_port()}", "required": True}
    with pytest.raises(ConfigError, match="logger 'mlflow' says required = true and cannot start"):
        make_run(folder=tmp_path, sections={"logger": [section]})
    assert not (tmp_path / "toy").exists()


@pytest.mark.slow
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
