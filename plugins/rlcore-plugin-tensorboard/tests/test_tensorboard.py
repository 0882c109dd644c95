"""The TensorBoard logger: the contract of loggers, read back as TensorBoard reads."""

import io
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from rlcore_plugin_tensorboard.logger import TensorboardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rlcore.errors import ConfigError
from rlcore.testing.contracts import LoggerContract, PluginContract
from rlcore.testing.contracts.logger import frames_of


class TestPlugin(PluginContract):
    plugin = "tensorboard"


def accumulated(folder):
    accumulator = EventAccumulator(str(folder / "tensorboard"))
    accumulator.Reload()
    return accumulator


class TestTensorBoard(LoggerContract):
    use = "tensorboard"
    tolerance = 1e-6
    shows = frozenset({"histogram", "image", "video", "text"})

    def read_back(self, folder):
        accumulator = accumulated(folder)
        rows = {}
        for tag in accumulator.Tags()["scalars"]:
            for event in accumulator.Scalars(tag):
                rows.setdefault(event.step, []).append((tag, event.value))
        return [(step, dict([entry])) for step, entries in sorted(rows.items()) for entry in entries]

    def read_media(self, folder):
        accumulator = accumulated(folder)
        media = {}
        for tag in accumulator.Tags()["images"]:
            for event in accumulator.Images(tag):
                frames = frames_of(io.BytesIO(event.encoded_image_string))
                assert (event.height, event.width) == frames.shape[1:3]
                kind = "video" if len(frames) > 1 else "image"
                media[kind, tag, event.step] = frames if len(frames) > 1 else frames[0]
        for tag in accumulator.Tags()["histograms"]:
            for event in accumulator.Histograms(tag):
                value = event.histogram_value
                edges = [value.min, *value.bucket_limit]
                media["histogram", tag, event.step] = value.bucket, edges
        for tag in accumulator.Tags()["tensors"]:
            for event in accumulator.Tensors(tag):
                name = tag.removesuffix("/text_summary")
                media["text", name, event.step] = event.tensor_proto.string_val[0].decode()
        return media

    def test_the_config_is_shown_as_text(self, tmp_path):
        logger = self.logger(tmp_path)
        logger.log_hparams({"run": {"seed": 3}})
        logger.close()
        accumulator = accumulated(tmp_path)
        (tag,) = accumulator.Tags()["tensors"]
        text = accumulator.Tensors(tag)[0].tensor_proto.string_val[0].decode()
        assert json.loads(text.strip("`\n")) == {"run": {"seed": 3}}

    def test_events_are_in_the_run_folder(self, tmp_path):
        logger = self.logger(tmp_path)
        logger.log_metrics({"a": 1.0}, 1)
        logger.close()
        (file,) = (tmp_path / "tensorboard").iterdir()
        assert file.name.startswith("events.out.tfevents.")

    def test_nothing_is_written_before_the_first_row(self, tmp_path):
        self.logger(tmp_path).close()
        assert not (tmp_path / "tensorboard").exists()

    def test_needs_a_run_folder(self):
        with pytest.raises(ConfigError, match="run folder"):
            self.make(self.bench())


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
