"""The CSV logger: the contract of loggers, and the files to the byte."""

import csv

import pytest

from rlcore.errors import ConfigError
from rlcore.testing import make_run
from rlcore.testing.contracts import LoggerContract, PluginContract


class TestPlugin(PluginContract):
    plugin = "csv"


class TestCSV(LoggerContract):
    use = "csv"

    def read_back(self, folder):
        rows = {}
        for name in ("metrics.csv", "timings.csv"):
            if not (folder / name).exists():
                continue
            with (folder / name).open(newline="") as stream:
                for row in csv.DictReader(stream):
                    rows.setdefault(int(row["frames"]), {})[row["key"]] = float(row["value"])
        return sorted(rows.items())

    def test_files_are_exact(self, tmp_path):
        logger = self.logger(tmp_path)
        logger.log_metrics({"train/loss": 0.1, "episode/return": 1.0, "time/frames_per_second": 2500.0}, 1000)
        logger.log_metrics({"train/loss": 1e-7}, 2000)
        logger.close()
        metrics = b"frames,key,value\n1000,train/loss,0.1\n1000,episode/return,1.0\n2000,train/loss,1e-07\n"
        assert (tmp_path / "metrics.csv").read_bytes() == metrics
        assert (tmp_path / "timings.csv").read_bytes() == b"frames,key,value\n1000,time/frames_per_second,2500.0\n"

    def test_keys_with_commas_and_quotes_are_quoted(self, tmp_path):
        logger = self.logger(tmp_path)
        logger.log_metrics({'a,b "c"': 1.0}, 1)
        logger.close()
        assert self.read_back(tmp_path) == [(1, {'a,b "c"': 1.0})]

    def test_a_resume_cuts_to_the_byte(self, tmp_path):
        logger = self.logger(tmp_path)
        logger.log_metrics({"a": 1.0}, 1)
        state = logger.state_dict()
        before = (tmp_path / "metrics.csv").read_bytes()
        logger.log_metrics({"a": 2.0, "time/b": 1.0}, 2)
        logger.flush()
        logger.load_state_dict(state)
        assert (tmp_path / "metrics.csv").read_bytes() == before
        logger.log_metrics({"a": 3.0}, 3)
        logger.close()
        assert (tmp_path / "metrics.csv").read_bytes() == before + b"3,a,3.0\n"

    def test_an_incomplete_last_line_is_cut_off(self, tmp_path):
        logger = self.logger(tmp_path)
        logger.log_metrics({"a": 1.0}, 1)
        state = logger.state_dict()
        logger.close()
        with (tmp_path / "metrics.csv").open("a") as stream:
            stream.write("2,a,4.")
        resumed = self.logger(tmp_path)
        resumed.load_state_dict(state)
        resumed.log_metrics({"a": 5.0}, 2)
        resumed.close()
        assert self.read_back(tmp_path) == [(1, {"a": 1.0}), (2, {"a": 5.0})]

    def test_needs_a_run_folder(self):
        with pytest.raises(ConfigError, match="run folder"):
            self.make(self.bench())


def test_equal_runs_write_equal_metrics(tmp_path):
    contents = []
    for name in ("a", "b"):
        make_run(folder=tmp_path / name, sections={"logger": [{"use": "csv"}]}).trainer.train()
        contents.append((tmp_path / name / "toy" / "metrics.csv").read_bytes())
    assert contents[0] == contents[1]
    assert b"time/" not in contents[0]
