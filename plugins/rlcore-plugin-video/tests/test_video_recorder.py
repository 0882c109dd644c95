"""The recorder of pixels: what it keeps, when it hands over, and under which step."""

import logging

import pytest
import torch
from rlcore_plugin_video.frames import tile
from rlcore_plugin_video.mp4 import VideoFolder, read_mp4
from rlcore_plugin_video.video_recorder import VideoRecorder
from tensordict import TensorDict

import rlcore
from rlcore import ConfigError, RlcoreError


class Kept:
    """A logger that keeps what it is given."""

    def __init__(self):
        self.videos = []

    def log_video(self, name, video, step, fps):
        self.videos.append((name, video, step, fps))


def pixels(value, *envs):
    return torch.full((*envs, 3, 8, 10), value, dtype=torch.uint8)


def step(value, *envs, **entries):
    return TensorDict({"pixels": pixels(value, *envs), **entries}, batch_size=envs)


def shades(video):
    """Return the grey of each frame of a video of even frames."""
    return video[..., 0, 0, 0].flatten().tolist()


def test_it_is_a_name_of_rlcore():
    assert rlcore.VideoRecorder is VideoRecorder


def test_the_frames_come_in_order_and_the_step_counts_frames():
    logger = Kept()
    recorder = VideoRecorder(logger, "run")
    for value in range(5):
        given = step(value)
        assert recorder(given) is given
    recorder.dump()
    ((name, video, at, fps),) = logger.videos
    assert (name, at, fps) == ("run", 5, 30)
    assert (video.shape, video.dtype) == ((1, 5, 3, 8, 10), torch.uint8)
    assert shades(video) == [0, 1, 2, 3, 4]
    recorder(step(9))
    recorder.dump("again", step=4096)
    recorder(step(8))
    recorder.dump()
    assert [(name, shades(video), at) for name, video, at, _ in logger.videos[1:]] == [
        ("run_again", [9], 4096),
        ("run", [8], 7),
    ], "a dump forgets the frames, and the count goes on"


def test_without_frames_nothing_is_handed_over():
    logger = Kept()
    VideoRecorder(logger, "run").dump()
    assert not logger.videos


def test_what_is_kept_does_not_follow_the_tensor():
    logger = Kept()
    recorder = VideoRecorder(logger, "run")
    reused = step(7)
    recorder(reused)
    reused["pixels"].zero_()
    recorder(reused)
    recorder.dump()
    assert shades(logger.videos[0][1]) == [7, 0]


def test_skip_keeps_the_first_frame_and_every_so_many_after_it():
    logger = Kept()
    recorder = VideoRecorder(logger, "run", skip=3, fps=7)
    for _ in range(2):
        for value in range(8):
            recorder(step(value))
        recorder.dump()
    assert [shades(video) for _, video, _, _ in logger.videos] == [[0, 3, 6]] * 2
    assert [(at, fps) for *_, at, fps in logger.videos] == [(8, 7), (16, 7)]


def test_frames_are_cropped():
    logger = Kept()
    recorder = VideoRecorder(logger, "run", center_crop=4)
    given = step(0)
    given["pixels"][:, 2:6, 3:7] = 5
    recorder(given)
    recorder.dump()
    assert logger.videos[0][1].shape == (1, 1, 3, 4, 4)
    assert logger.videos[0][1].eq(5).all()


def test_the_envs_of_a_step_stand_side_by_side():
    logger = Kept()
    recorder = VideoRecorder(logger, "run")
    envs = torch.stack([pixels(value) for value in (1, 2, 3)])
    recorder(TensorDict({"pixels": envs}, batch_size=[3]))
    recorder.dump()
    _, video, at, _ = logger.videos[0]
    assert torch.equal(video[0], tile(envs[:, None]))
    assert at == 3, "a step of three envs is three frames"


def test_without_a_grid_a_batch_is_a_stretch_of_time():
    logger = Kept()
    recorder = VideoRecorder(logger, "run", make_grid=False)
    for start in (0, 3):
        times = torch.stack([pixels(start + value) for value in range(3)])
        recorder(TensorDict({"pixels": times}, batch_size=[3]))
    recorder.dump()
    assert shades(logger.videos[0][1]) == [0, 1, 2, 3, 4, 5]


def test_frames_beyond_the_most_are_dropped_and_it_says_so_once(caplog):
    logger = Kept()
    recorder = VideoRecorder(logger, "run", max_frames=2)
    with caplog.at_level(logging.WARNING):
        for value in range(5):
            recorder(step(value))
    assert [record.getMessage() for record in caplog.records] == [
        "VideoRecorder 'run' keeps 2 frames and drops the others"
    ]
    recorder.dump()
    recorder(step(9))
    recorder.dump()
    assert [(shades(video), at) for _, video, at, _ in logger.videos] == [([0, 1], 5), ([9], 6)]


def test_there_is_a_most_without_being_asked():
    recorder = VideoRecorder(None, "run", make_grid=False)
    recorder(TensorDict({"pixels": torch.zeros(600, 3, 2, 2, dtype=torch.uint8)}, batch_size=[600]))
    assert len(recorder._frames["pixels"]) == 500


@pytest.mark.parametrize("nested", [False, True])
def test_it_dumps_when_every_env_is_done(nested):
    logger = Kept()
    recorder = VideoRecorder(logger, "run", dump_on_done=True)
    ends = [[False, False], [True, False], [True, True], [False, False]]
    for value, done in enumerate(ends):
        flags = {"done": torch.tensor(done)[:, None]}
        recorder(step(value, 2, **({"next": TensorDict(flags, batch_size=[2])} if nested else flags)))
    assert [(shades(video), at) for _, video, at, _ in logger.videos] == [([0, 1, 2], 6)]


def test_several_keys_are_several_videos():
    logger = Kept()
    recorder = VideoRecorder(logger, "run", in_keys=["pixels", ("side", "view")])
    recorder(step(1, side=TensorDict({"view": pixels(2)})))
    recorder.dump("x")
    assert [(name, shades(video)) for name, video, _, _ in logger.videos] == [
        ("run/pixels_x", [1]),
        ("run/side/view_x", [2]),
    ]


def test_pixels_are_written_under_the_out_keys_as_they_came():
    recorder = VideoRecorder(Kept(), "run", center_crop=2, out_keys=["copied"])
    given = recorder(step(3))
    assert torch.equal(given["copied"], given["pixels"])


def test_pixels_that_are_no_tensor_are_taken_too():
    logger = Kept()
    recorder = VideoRecorder(logger, "run")
    given = TensorDict({}, batch_size=[2])
    given.set_non_tensor("pixels", pixels(4).movedim(0, -1).numpy())
    recorder(given)
    recorder.dump()
    assert shades(logger.videos[0][1]) == [4]


def test_missing_pixels_are_an_error_that_says_what_there_is():
    with pytest.raises(RlcoreError, match="'run' finds no pixels under 'pixels'; there is: 'observation'"):
        VideoRecorder(None, "run")(TensorDict({"observation": torch.zeros(3)}))


def test_frames_of_two_sizes_are_an_error():
    recorder = VideoRecorder(None, "run")
    recorder(step(0))
    with pytest.raises(RlcoreError, match=r"frames \[3, 4, 4\] under 'pixels' follow frames \[3, 8, 10\]"):
        recorder(TensorDict({"pixels": torch.zeros(3, 4, 4)}))


@pytest.mark.parametrize("argument", [{"skip": 0}, {"max_frames": 0}, {"fps": -1}, {"center_crop": 0}])
def test_numbers_must_be_positive(argument):
    ((name, value),) = argument.items()
    with pytest.raises(ConfigError, match=f"{name} = {value} must be positive"):
        VideoRecorder(None, "run", **argument)


def test_there_are_as_many_out_keys_as_in_keys():
    with pytest.raises(ConfigError, match="1 in_keys, but 2 out_keys"):
        VideoRecorder(None, "run", out_keys=["a", "b"])


def test_an_animation_shows_the_frames(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    from matplotlib import pyplot

    recorder = VideoRecorder(None, "run")
    for value in (10, 20):
        recorder(step(value))
    animation = recorder.to_animation(title="two", clear=True)
    shown = [artists[0].get_array()[0, 0].tolist() for artists in animation.new_saved_frame_seq()]
    assert shown == [[10, 10, 10], [20, 20, 20]]
    assert animation._fig.axes[0].get_title() == "two"
    animation._draw_was_started = True  # it is never shown, which would be a warning
    pyplot.close(animation._fig)
    with pytest.raises(RlcoreError, match="no frames yet"):
        recorder.to_animation()


def test_a_folder_of_mp4_files_takes_the_video(tmp_path):
    recorder = VideoRecorder(VideoFolder(tmp_path), "run", fps=5)
    for value in (40, 80, 120):
        recorder(step(value))
    recorder.dump(step=64)
    frames, fps = read_mp4(tmp_path / "run_64.mp4")
    assert fps == 5
    assert frames.float().mean(dim=(1, 2, 3)).tolist() == pytest.approx([40, 80, 120], abs=2)
