"""The TensorBoard logger: the contract of loggers, read back as TensorBoard reads."""

import json

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rlcore.errors import ConfigError
from rlcore.testing.contracts import LoggerContract, PluginContract


class TestPlugin(PluginContract):
    plugin = "tensorboard"


def accumulated(folder):
    accumulator = EventAccumulator(str(folder / "tensorboard"))
    accumulator.Reload()
    return accumulator


class TestTensorBoard(LoggerContract):
    use = "tensorboard"
    tolerance = 1e-6

    def read_back(self, folder):
        accumulator = accumulated(folder)
        rows = {}
        for tag in accumulator.Tags()["scalars"]:
            for event in accumulator.Scalars(tag):
                rows.setdefault(event.step, []).append((tag, event.value))
        return [(step, dict([entry])) for step, entries in sorted(rows.items()) for entry in entries]

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
