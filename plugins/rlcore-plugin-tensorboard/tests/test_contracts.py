"""The contracts of the plugin and of its logger, read back as TensorBoard reads."""

import io
import json

import pytest
from rlcore_plugin_testing.contracts import LoggerContract, PluginContract
from rlcore_plugin_testing.contracts.logger import frames_of
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rlcore.errors import ConfigError


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
