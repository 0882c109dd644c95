"""The hook: what its videos show, that training does not notice it, and what happens without pictures."""

import logging

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_testing import make_run
from rlcore_plugin_video.mp4 import read_mp4

from rlcore.errors import ConfigError, EnvError, StorageError
from rlcore.loggers.writer import LogWriter

# episodes of the seeds 10000, 10001 and 10002 have the lengths 3, 5 and 4
LENGTHS = [3, 5, 4]


class Kept:
    """A logger that keeps the videos."""

    def __init__(self):
        self.videos = []

    def log_video(self, name, video, step, fps):
        self.videos.append((name, torch.from_numpy(video), step, fps))

    def log_metrics(self, metrics, step):
        pass

    def flush(self):
        pass

    def close(self):
        pass


def recorded(folder, *overrides, sections=None, resume=False, stop_at=None, **keys):
    """Train the small run with the hook and a logger that keeps videos; return the videos and the trainer."""
    hook = {"use": "video:video", "skip": 1, **keys}
    trainer = make_run(*overrides, folder=folder, sections={"hook": [hook], **(sections or {})}, resume=resume).trainer
    kept = Kept()
    trainer.metrics.writers.append(LogWriter("kept", kept))
    if stop_at is not None:
        trainer.stop_at = stop_at
    trainer.train()
    return kept.videos, trainer


def files(folder):
    return sorted(path.name for path in (folder / "toy" / "videos").glob("*"))


def elapsed(frames):
    """Return the steps that the blue bar of each frame shows, two columns for each, as an encoder left it."""
    return [round(int((frame[2, 16] > 128).sum()) / 2) for frame in frames]


def test_an_evaluation_is_a_file_and_a_video_of_every_logger(tmp_path):
    videos, trainer = recorded(tmp_path)
    assert files(tmp_path) == ["evaluation_0.mp4", "evaluation_32.mp4", "evaluation_64.mp4"]
    assert [(name, step, fps) for name, _, step, fps in videos] == [("evaluation", at, 10) for at in (0, 32, 64)]
    for _, video, step, _ in videos:
        assert (video.shape, video.dtype) == ((1, LENGTHS[0] + 1, 3, 32, 48), torch.uint8)
        written, fps = read_mp4(tmp_path / "toy" / "videos" / f"evaluation_{step}.mp4")
        assert fps == 10
        assert (written.float() - video[0].float()).abs().mean() < 4
        assert elapsed(written) == elapsed(video[0]) == [0, 1, 2, 3], "the last picture is that of the end"
    assert trainer.last_evaluation.lengths == tuple(LENGTHS)


@pytest.mark.parametrize("mode", ["same_step", "next_step"])
def test_episodes_are_those_of_the_evaluation_side_by_side(mode, tmp_path):
    videos, _ = recorded(tmp_path, f'env.reset_mode="{mode}"', episodes=3)
    video = videos[0][1]
    assert video.shape == (1, 6, 3, 64, 96)
    places = [video[0, :, :, 32 * (i // 2) : 32 * (i // 2) + 32, 48 * (i % 2) : 48 * (i % 2) + 48] for i in range(4)]
    assert list(map(elapsed, places[:3])) == [[0, 1, 2, 3, 3, 3], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 4]]
    assert not places[3].any()


def test_without_a_grid_each_episode_is_a_file_of_its_own_length(tmp_path):
    videos, _ = recorded(tmp_path, "run.total_frames=16", episodes=2, grid=False, tag="toy")
    assert files(tmp_path) == [f"toy_seed1000{episode}_{at}.mp4" for episode in (0, 1) for at in (0, 16)]
    folder = tmp_path / "toy" / "videos"
    assert [len(read_mp4(folder / f"toy_seed1000{episode}_0.mp4")[0]) for episode in (0, 1)] == [4, 6]
    assert videos[0][1].shape == (2, 6, 3, 32, 48)
    assert list(map(elapsed, videos[0][1])) == [[0, 1, 2, 3, 3, 3], [0, 1, 2, 3, 4, 5]]


def test_more_episodes_than_were_evaluated_are_those_that_were(tmp_path):
    videos, _ = recorded(tmp_path, episodes=9, grid=False)
    assert len(videos[0][1]) == 3


def test_the_frames_are_skipped_limited_cropped_and_timed(tmp_path):
    limited = {"env": {"use": "testing:toy", "episode_lengths": [11]}}
    videos, _ = recorded(tmp_path, sections=limited, skip=3, max_frames=2, center_crop=20)
    _, video, _, fps = videos[0]
    assert video.shape == (1, 2, 3, 20, 20)
    assert fps == 3, "10 steps per second, every third shown"
    whole, _ = recorded(tmp_path / "whole", sections=limited, skip=3, fps=50)
    assert (elapsed(whole[0][1][0]), whole[0][3]) == ([0, 3, 6, 9, 11], 50), "the end is shown, whatever is left out"


def test_every_second_evaluation_is_recorded_also_over_a_resume(tmp_path):
    often = {"evaluator": {"use": "episodes", "episodes": 2, "every": 16}}
    _, _ = recorded(tmp_path, sections=often, every=2)
    expected = ["evaluation_0.mp4", "evaluation_32.mp4", "evaluation_64.mp4"]
    assert files(tmp_path) == expected
    recorded(tmp_path / "parts", sections=often, every=2, stop_at=32)
    assert files(tmp_path / "parts") == expected[:2]
    recorded(tmp_path / "parts", sections=often, every=2, resume=True)
    assert files(tmp_path / "parts") == expected


def manifest(trainer):
    return trainer.parts.store.entries()[-1].manifest


REAL = {
    "env": {"use": "gymnasium", "id": "CartPole-v1", "num_envs": 2},
    "transform": [{"use": "transforms:running-observation-norm"}],
    "model": {"use": "mlp", "hidden": [8]},
    "loss": {"use": "ppo"},
    "estimator": {"use": "gae"},
    "collector": {"use": "local", "frames_per_batch": 64},
    "evaluator": {"use": "episodes", "episodes": 2, "every": 64},
}


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A run of CartPole with videos: the videos, the trainer, the folder."""
    folder = tmp_path_factory.mktemp("real")
    return *recorded(folder, "run.total_frames=256", sections=REAL, episodes=2), folder


def test_training_does_not_notice_the_recording(real, tmp_path):
    _, trainer, _ = real
    plain = make_run("run.total_frames=256", sections=REAL, folder=tmp_path).trainer
    plain.train()
    with_videos, without = manifest(trainer), manifest(plain)
    assert "hook.video" in with_videos["digests"]
    assert with_videos["digest"] == without["digest"]
    assert trainer.last_evaluation == plain.last_evaluation


def test_a_run_with_videos_is_resumed_exactly(real, tmp_path):
    _, trainer, whole = real
    recorded(tmp_path, "run.total_frames=256", sections=REAL, episodes=2, stop_at=128)
    _, resumed = recorded(tmp_path, "run.total_frames=256", sections=REAL, episodes=2, resume=True)
    assert manifest(resumed)["exact"]
    assert manifest(resumed)["digests"]["hook.video"] == manifest(trainer)["digests"]["hook.video"]
    assert manifest(resumed)["digest"] == manifest(trainer)["digest"]
    videos = [folder / "toy" / "videos" / "evaluation_256.mp4" for folder in (whole, tmp_path)]
    assert torch.equal(*(read_mp4(video)[0] for video in videos)), "the same policy plays otherwise after a resume"


def played_by_hand(trainer, seed):
    """Return the frames of one episode of the policy as it is now, without rlcore's envs, evaluator or recorder."""
    env = gymnasium.make("CartPole-v1", render_mode="rgb_array")
    (norm,) = (transform.frozen() for transform in trainer.transforms)
    observation, _ = env.reset(seed=seed)
    frames, first, over = [env.render().copy()], np.ones(1, dtype=bool), False
    while not over:
        seen = torch.from_numpy(norm.step(observation[None], first))
        observation, _, terminated, truncated, _ = env.step(int(trainer.model.policy.mode(seen)))
        frames.append(env.render().copy())
        first, over = np.zeros(1, dtype=bool), terminated or truncated
    env.close()
    return torch.from_numpy(np.stack(frames)).permute(0, 3, 1, 2)


def test_a_video_shows_the_episodes_that_were_evaluated(real):
    videos, trainer, _ = real
    _, video, step, fps = videos[-1]
    result = trainer.last_evaluation
    assert (step, fps) == (256, 50)
    assert video.shape == (1, max(result.lengths) + 1, 3, 400, 1200)
    for index, (seed, length) in enumerate(zip(result.seeds, result.lengths, strict=True)):
        frames = video[0, :, :, :, 600 * index : 600 * index + 600]
        with torch.inference_mode():
            expected = played_by_hand(trainer, seed)
        assert len(expected) == length + 1
        assert torch.equal(frames[: length + 1], expected)
        assert (frames[length:] == frames[length]).all(), "the picture moves after the end"


OTHER_ENVS = """
from pydantic import create_model
from rlcore import Component, EnvError, hookimpl
from rlcore_plugin_testing.toy import ToyEnv

class Plain(ToyEnv):
    Config = create_model("Config", __config__={"extra": "forbid"}, num_envs=(int, 2))

    def __init__(self, config, context):
        super().__init__(ToyEnv.Config(num_envs=config.num_envs), context)

class Broken(ToyEnv):
    renders = 0

    def render(self, indices=None):
        Broken.renders += 1
        if Broken.renders > 5:
            raise EnvError("the lamp is out")
        return super().render(indices)

class Mute(ToyEnv):
    render = None

class Restless(ToyEnv):
    visits = 0

    def reset(self, seed=None):
        Restless.visits += 1
        self._config.episode_lengths[:] = [Restless.visits]
        return super().reset(seed)

@hookimpl
def provide_components():
    return [Component("env", env.__name__.lower(), env) for env in (Plain, Broken, Mute, Restless)]
"""


@pytest.fixture
def other_envs(tmp_path):
    """Sections that use an env of a loose file."""
    path = tmp_path / "envs.py"
    path.write_text(OTHER_ENVS)
    return lambda name: {"plugins": {"files": [str(path)]}, "env": {"use": name}}


def test_an_env_without_pictures_is_a_warning_and_the_run_goes_on(tmp_path, other_envs, caplog):
    videos, trainer = recorded(tmp_path, sections=other_envs("plain"))
    assert trainer.progress.frames == 64
    assert not videos
    assert not files(tmp_path)
    (warning,) = [record.getMessage() for record in caplog.records if "video" in record.getMessage()]
    assert warning.startswith("video: no videos will be made: env 'plain'")
    assert "has no key 'render_mode'" in warning


def test_an_env_without_pictures_is_an_error_before_the_first_frame_when_they_are_required(tmp_path, other_envs):
    with pytest.raises(ConfigError, match="has no key 'render_mode'"):
        recorded(tmp_path, sections=other_envs("plain"), required=True)
    assert not list((tmp_path / "toy" / "checkpoints").glob("*")), "the run had begun"


def test_an_env_with_the_key_but_no_render_is_named(tmp_path, other_envs):
    with pytest.raises(ConfigError, match=r"env 'toy' has the key render_mode, but no render\(\) and render_fps"):
        recorded(tmp_path, sections=other_envs("mute"), required=True)


def test_a_renderer_that_fails_on_the_way_costs_its_video_only(tmp_path, other_envs, caplog):
    _, trainer = recorded(tmp_path, sections=other_envs("broken"))
    assert trainer.progress.frames == 64
    assert files(tmp_path) == ["evaluation_0.mp4"]
    assert "video: no video of frame 32: the lamp is out" in caplog.text


def test_a_renderer_that_fails_on_the_way_ends_the_run_when_required(tmp_path, other_envs):
    with pytest.raises(EnvError, match="the lamp is out"):
        recorded(tmp_path, sections=other_envs("broken"), required=True)


def test_a_video_that_cannot_be_written_costs_nothing_else(tmp_path, caplog):
    trainer = make_run(folder=tmp_path, sections={"hook": [{"use": "video:video"}]}).trainer
    (tmp_path / "toy" / "videos").write_text("a file in the way")
    with caplog.at_level(logging.WARNING):
        trainer.train()
    assert trainer.progress.frames == 64
    assert caplog.text.count("evaluation_32.mp4' cannot be written") == 1
    required = make_run(folder=tmp_path / "two", sections={"hook": [{"use": "video:video", "required": True}]}).trainer
    (tmp_path / "two" / "toy" / "videos").write_text("a file in the way")
    with pytest.raises(StorageError, match=r"evaluation_0.mp4' cannot be written"):
        required.train()


ON_THE_DEVICE = {
    "estimator": {"use": "ppo:gae"},
    "model": {"use": "pqn:normed-q-network", "hidden": [8]},
    "loss": {"use": "pqn"},
    "collector": {"use": "device", "frames_per_batch": 16},
}


@pytest.mark.parametrize(
    ("name", "model", "shape"),
    [("CartPole-v1", {}, (3, 400, 600)), ("MinAtar/Breakout-v1", {"channels": [4]}, (3, 160, 160))],
)
def test_envs_of_tensors_are_recorded(name, model, shape, tmp_path):
    """As many pictures as steps, and that of the end, which is not the beginning of the next episode."""
    env = {"use": "torch-envs", "id": name, "num_envs": 2, "max_episode_steps": 12}
    sections = {**ON_THE_DEVICE, "env": env, "model": {**ON_THE_DEVICE["model"], **model}}
    videos, trainer = recorded(tmp_path, "run.total_frames=32", sections=sections, episodes=2, grid=False)
    assert [step for _, _, step, _ in videos] == [0, 32]
    video, result = videos[-1][1], trainer.last_evaluation
    assert video.shape == (2, max(result.lengths[:2]) + 1, *shape)
    for frames, length in zip(video, result.lengths, strict=False):
        assert not torch.equal(frames[length - 1], frames[length])
        assert not torch.equal(frames[0], frames[length])
        assert all(torch.equal(frame, frames[length]) for frame in frames[length:])
    assert len(files(tmp_path)) == 4


def test_an_env_that_does_not_repeat_itself_is_named(tmp_path, other_envs, caplog):
    recorded(tmp_path, "run.total_frames=16", sections=other_envs("restless"))
    assert "video: the episodes of frame 0 went otherwise than evaluated" in caplog.text


def test_a_run_that_writes_nothing_makes_no_env():
    trainer = make_run(sections={"hook": [{"use": "video:video"}]}).trainer
    hook = trainer.hooks.hooks[0].instance
    made = []
    make_env = hook._make_env
    hook._make_env = lambda *arguments, **keys: made.append(1) or make_env(*arguments, **keys)
    trainer.train()
    assert not made


def test_the_envs_are_closed_at_the_end(tmp_path):
    trainer = make_run(folder=tmp_path, sections={"hook": [{"use": "video:video"}]}).trainer
    hook = trainer.hooks.hooks[0].instance
    made = []
    make_env = hook._make_env
    hook._make_env = lambda *arguments, **keys: made.append(make_env(*arguments, **keys)) or made[-1]
    trainer.train()
    assert [env.spec.num_envs for env in made] == [1, 3], "one to try, one for all evaluations"
    assert all(env.closed for env in made)


def test_the_tag_is_a_part_of_file_names():
    with pytest.raises(ConfigError, match="tag"):
        make_run(sections={"hook": [{"use": "video:video", "tag": "../elsewhere"}]})
