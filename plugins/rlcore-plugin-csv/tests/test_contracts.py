"""The contracts of the plugin and of its logger, and its files to the byte."""

import csv
import io

import pytest
from rlcore_plugin_testing.contracts import LoggerContract, PluginContract
from rlcore_plugin_testing.contracts.logger import frames_of

from rlcore.errors import ConfigError


class TestPlugin(PluginContract):
    plugin = "csv"


def picture(content):
    return frames_of(io.BytesIO(content))[0]


def rows_of(file):
    if not file.exists():
        return []
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


class TestCSV(LoggerContract):
    use = "csv"
    shows = frozenset({"histogram", "image", "video", "text"})

    def read_back(self, folder):
        rows = {}
        for name in ("metrics.csv", "timings.csv"):
            for row in rows_of(folder / name):
                rows.setdefault(int(row["frames"]), {})[row["key"]] = float(row["value"])
        return sorted(rows.items())

    def read_media(self, folder):
        media, bins = {}, {}
        for row in rows_of(folder / "media.csv"):
            content = (folder / row["file"]).read_bytes()
            read = {"text": bytes.decode, "image": picture, "video": lambda x: frames_of(io.BytesIO(x))}[row["kind"]]
            media[row["kind"], row["key"], int(row["frames"])] = read(content)
        for row in rows_of(folder / "histograms.csv"):
            if row["low"] != "nan":
                bins.setdefault(("histogram", row["key"], int(row["frames"])), []).append(row)
            else:
                assert row["count"] == "2", "two numbers are not finite"
        for place, rows in bins.items():
            edges = [float(rows[0]["low"]), *(float(row["high"]) for row in rows)]
            media[place] = [int(row["count"]) for row in rows], edges
        return media

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
        logger.log_text("note", "later", 2)
        logger.flush()
        (file,) = (tmp_path / "texts").rglob("*.txt")
        logger.load_state_dict(state)
        assert not file.exists()
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
