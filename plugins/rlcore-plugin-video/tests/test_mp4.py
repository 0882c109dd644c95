"""mp4 files show what was written, read back frame by frame."""

import pytest
import torch
from rlcore_plugin_video.mp4 import VideoFolder, read_mp4, write_mp4

from rlcore.errors import StorageError


def moving(count=12, channels=3, height=64, width=96):
    """A bright square that moves to the right, four pixels per frame, over a grey slope."""
    video = torch.linspace(20, 120, width).to(torch.uint8).expand(count, channels, height, width).clone()
    for index, frame in enumerate(video):
        frame[:1, 20:40, 4 * index : 4 * index + 20] = 240
    return video


def mean_error(one, other):
    return (one.float() - other.float()).abs().mean(dim=(1, 2, 3))


@pytest.mark.parametrize("channels", [1, 3])
def test_what_is_read_is_what_was_written(tmp_path, channels):
    video = moving(channels=channels)
    write_mp4(tmp_path / "new" / "a.mp4", video, 25)
    found, fps = read_mp4(tmp_path / "new" / "a.mp4")
    assert (found.shape, fps) == ((12, 3, 64, 96), 25)
    error = mean_error(found, video.expand(-1, 3, -1, -1))
    assert error.max() < 1.5, "of 255"
    neighbour = mean_error(found[1:], video[:-1].expand(-1, 3, -1, -1))
    assert (error[1:] < 0.5 * neighbour).all(), "a frame looks more like the one before it than like itself"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.mp4"]


def test_odd_sides_are_made_even_by_their_last_row_and_column(tmp_path):
    video = moving(count=3, height=31, width=45)
    write_mp4(tmp_path / "odd.mp4", video, 5)
    found, _ = read_mp4(tmp_path / "odd.mp4")
    assert found.shape == (3, 3, 32, 46)
    assert mean_error(found[..., :31, :45], video).max() < 1.5
    assert mean_error(found[..., 31:, :45], video[..., 30:, :]).max() < 4


def test_a_single_frame_is_a_video(tmp_path):
    write_mp4(tmp_path / "one.mp4", moving(count=1), 1)
    assert read_mp4(tmp_path / "one.mp4")[0].shape[0] == 1


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path):
    write_mp4(tmp_path / "a.mp4", moving(count=9), 25)
    write_mp4(tmp_path / "a.mp4", moving(count=4), 25)
    assert len(read_mp4(tmp_path / "a.mp4")[0]) == 4
    (tmp_path / "b.mp4").mkdir()
    with pytest.raises(StorageError, match=r"b.mp4' cannot be written: .*[Dd]irectory"):
        write_mp4(tmp_path / "b.mp4", moving(), 25)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.mp4", "b.mp4"], "a part of a video was left behind"


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "videos").write_text("a file")
    with pytest.raises(StorageError, match=r"videos/a.mp4' cannot be written"):
        write_mp4(tmp_path / "videos" / "a.mp4", moving(count=1), 25)


def test_what_is_no_video_cannot_be_read(tmp_path):
    (tmp_path / "a.mp4").write_text("no video")
    with pytest.raises(StorageError, match=r"a.mp4' cannot be read"):
        read_mp4(tmp_path / "a.mp4")


def test_a_folder_takes_videos_as_a_logger_does(tmp_path):
    folder = VideoFolder(tmp_path / "videos")
    folder.log_video("eval/left camera", moving()[None], 2048, 10)
    folder.log_video("both", torch.stack([moving(), moving().flip(0)]), 64, 10)
    names = sorted(path.name for path in (tmp_path / "videos").iterdir())
    assert names == ["both_64_0.mp4", "both_64_1.mp4", "eval-left-camera_2048.mp4"]
    assert mean_error(read_mp4(tmp_path / "videos" / "both_64_1.mp4")[0], moving().flip(0)).max() < 1.5
