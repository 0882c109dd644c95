"""The CSV logger: the contract of loggers, and the files to the byte."""

import csv
import importlib.util
import io
import json

import numpy as np
import pytest
import torch
from rlcore_plugin_csv.logger import CSVLogger

from rlcore.errors import ConfigError, PluginError, RlcoreError
from rlcore.testing import make_run
from rlcore.testing.contracts import LoggerContract, PluginContract
from rlcore.testing.contracts.logger import VIDEO, frames_of


def picture(content):
    return frames_of(io.BytesIO(content))[0]


class TestPlugin(PluginContract):
    plugin = "csv"


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


def test_equal_runs_write_equal_metrics(tmp_path):
    contents = []
    for name in ("a", "b"):
        make_run(folder=tmp_path / name, sections={"logger": [{"use": "csv"}]}).trainer.train()
        contents.append((tmp_path / name / "toy" / "metrics.csv").read_bytes())
    assert contents[0] == contents[1]
    assert b"time/" not in contents[0]


# without a config


def test_a_logger_of_its_own_writes_into_a_folder_of_its_name(tmp_path):
    logger = CSVLogger("trial", tmp_path)
    assert (logger.exp_name, logger.log_dir, logger.experiment) == ("trial", str(tmp_path), logger)
    logger.log_hparams({"lr": 0.1, "layers": [64, 64]})
    logger.log_scalar("loss", 2)
    logger.log_scalar("loss", torch.tensor(1.5, requires_grad=True))
    logger.log_scalar("return", 7.0)
    logger.close()
    expected = b"frames,key,value\n0,loss,2.0\n1,loss,1.5\n0,return,7.0\n"
    assert (tmp_path / "trial" / "metrics.csv").read_bytes() == expected, "without a step, each name counts for itself"
    assert json.loads((tmp_path / "trial" / "hparams.json").read_text()) == {"lr": 0.1, "layers": [64, 64]}


@pytest.mark.parametrize("video_format", ["pt", "memmap"])
def test_videos_can_be_kept_as_they_are(tmp_path, video_format):
    logger = CSVLogger("trial", tmp_path, video_format=video_format)
    logger.log_video("../up/and away", torch.from_numpy(VIDEO), 5)
    logger.close()
    (file,) = tmp_path.rglob(f"*.{video_format}")
    assert file.relative_to(tmp_path / "trial").as_posix() == f"videos/_/up/and away/000000000005.{video_format}"
    found = torch.load(file).numpy() if video_format == "pt" else np.fromfile(file, np.uint8).reshape(VIDEO.shape)
    assert np.array_equal(found, VIDEO)


def test_videos_can_be_mp4(tmp_path):
    mp4 = pytest.importorskip("rlcore_plugin_video.mp4")
    logger = CSVLogger("trial", tmp_path, video_format="mp4", video_fps=4)
    grey = np.repeat(np.arange(0, 250, 50, dtype=np.uint8), 16 * 32 * 3).reshape(1, 5, 3, 16, 32)
    logger.log_video("a", np.concatenate([grey, grey]), 5)
    logger.close()
    frames, fps = mp4.read_mp4(tmp_path / "trial" / "videos" / "a" / "000000000005.mp4")
    assert (list(frames.shape), fps) == ([5, 3, 16, 64], 4)
    assert [round(float(frame.float().mean()) / 50) for frame in frames] == [0, 1, 2, 3, 4]


def test_mp4_without_the_plugin_that_writes_it_is_refused(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PluginError, match="pip install rlcore-plugin-video"):
        CSVLogger("trial", video_format="mp4")


def test_an_unknown_video_format_is_refused():
    with pytest.raises(ConfigError, match="gif, mp4, pt, memmap"):
        CSVLogger("trial", video_format="avi")


@pytest.mark.parametrize("video", [VIDEO.astype(float), VIDEO[0], VIDEO[:, :, :2], VIDEO[:, :0]])
def test_what_is_no_video_is_refused(tmp_path, video):
    with pytest.raises(RlcoreError, match=r"a video is uint8 \[N, T, C, H, W\] with C 1 or 3"):
        CSVLogger("trial", tmp_path).log_video("a", video, 0)
