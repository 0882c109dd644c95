"""The CSV logger: equal runs, videos, and loggers without a config."""

import importlib.util
import json

import numpy as np
import pytest
import torch
from rlcore_plugin_csv.logger import CSVLogger
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.contracts.logger import VIDEO

from rlcore.errors import ConfigError, PluginError, RlcoreError


def test_equal_runs_write_equal_metrics(tmp_path):
    contents = []
    for name in ("a", "b"):
        make_run(folder=tmp_path / name, sections={"logger": [{"use": "csv"}]}).trainer.train()
        contents.append((tmp_path / name / "toy" / "metrics.csv").read_bytes())
    assert contents[0] == contents[1]
    assert b"time/" not in contents[0]


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
