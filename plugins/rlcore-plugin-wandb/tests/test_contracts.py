"""The contracts of the plugin and of its logger, in offline mode."""

import io
import json
import time

import numpy as np
import pytest
from rlcore_plugin_spool.contracts import SpoolingLoggerContract
from rlcore_plugin_testing.contracts import PluginContract
from rlcore_plugin_testing.contracts.logger import frames_of

from rlcore.errors import ConfigError

from .reading import history, id_of, offline, whole_rows


class TestPlugin(PluginContract):
    plugin = "wandb"


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
