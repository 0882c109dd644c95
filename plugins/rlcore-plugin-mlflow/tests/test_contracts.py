"""The contracts of the plugin and of its logger, with a database file."""

import itertools
import json

import pytest
from rlcore_plugin_spool.contracts import SpoolingLoggerContract
from rlcore_plugin_testing.contracts import PluginContract

from rlcore.errors import ConfigError

from .reading import Tracked


class TestPlugin(PluginContract):
    plugin = "mlflow"


class TestMLflow(SpoolingLoggerContract):
    use = "mlflow"
    shows = frozenset({"histogram", "image", "video", "text"})
    asks_what_arrived = True

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
