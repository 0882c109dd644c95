"""The TensorBoard logger: without a config, and as the server of TensorBoard shows it."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from rlcore_plugin_tensorboard.logger import TensorboardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def test_a_logger_of_its_own_writes_into_a_folder_of_its_name(tmp_path):
    logger = TensorboardLogger("trial", tmp_path)
    assert (logger.exp_name, logger.log_dir) == ("trial", str(tmp_path))
    assert logger.experiment.log_dir == str(tmp_path / "trial")
    logger.log_scalar("loss", 2)
    logger.log_scalar("loss", 1e300)
    logger.close()
    accumulator = EventAccumulator(str(tmp_path / "trial"))
    accumulator.Reload()
    assert [(event.step, event.value) for event in accumulator.Scalars("loss")] == [(0, 2.0), (1, float("inf"))]


def get(url, process):
    """Return the answer of a server that may still be starting."""
    for _ in range(600):
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.read()
        except (urllib.error.URLError, ConnectionError):
            assert process.poll() is None, "the server has ended"
            time.sleep(0.1)
    raise AssertionError(f"{url} does not answer")


def test_the_server_of_tensorboard_shows_what_was_written(tmp_path):
    logger = TensorboardLogger("tensorboard", tmp_path)
    logger.log_metrics({"episode/return": 7.5}, 1000)
    logger.log_metrics({"episode/return": 8.5}, 2000)
    logger.close()
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(tmp_path), "--load_fast=false"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            base = f"http://127.0.0.1:{port}/data/plugin/scalars"
            for _ in range(300):  # it reads the files in a thread of its own
                if "tensorboard" in json.loads(get(f"{base}/tags", process)):
                    break
                time.sleep(0.1)
            points = json.loads(get(f"{base}/scalars?run=tensorboard&tag=episode%2Freturn", process))
        finally:
            process.terminate()
    assert [point[1:] for point in points] == [[1000, 7.5], [2000, 8.5]]
