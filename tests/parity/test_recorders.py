"""Recorders and loggers in a script of TorchRL's."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch
from tensordict.nn import TensorDictModule

envs = pytest.importorskip("torchrl.envs")
loggers = pytest.importorskip("torchrl.record.loggers")
record = pytest.importorskip("torchrl.record")
pytest.importorskip("rlcore_plugin_video")

import rlcore  # noqa: E402
import rlcore.loggers  # noqa: E402

VIDEO = {"torchrl": record.VideoRecorder, "rlcore": rlcore.VideoRecorder}


class Picture(gymnasium.Env):
    """Renders the number of its step, as a grey picture."""

    metadata = {"render_modes": ["rgb_array"]}
    render_mode = "rgb_array"
    observation_space = gymnasium.spaces.Box(0.0, 10.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    steps = 0

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.full(1, self.steps, np.float32), 1.0, False, False, {}

    def render(self):
        return np.full((8, 6, 3), self.steps, np.uint8)


class Videos:
    """Keeps videos, as whichever library hands them over."""

    def __init__(self):
        self.videos = []

    def log_video(self, name, video, step=None, **options):
        self.videos.append((name, torch.as_tensor(video)))


def env():
    return envs.GymWrapper(Picture(), from_pixels=True, pixels_only=False)


@pytest.mark.parametrize("place", ["alone", "composed", "appended"])
def test_a_recorder_in_an_env_records_what_theirs_does(library, place):
    logger = Videos()
    recorder = VIDEO[library](logger, tag="episode", skip=1)
    if place == "alone":
        made = envs.TransformedEnv(env(), recorder)
    elif place == "composed":
        made = envs.TransformedEnv(env(), envs.Compose(envs.StepCounter(), recorder))
    else:
        made = envs.TransformedEnv(env())
        made.append_transform(recorder)
    made.rollout(3)
    made.transform.dump(suffix="first")
    made.rollout(2)
    made.transform.dump()
    names, videos = zip(*logger.videos, strict=True)
    assert names == ("episode_first", "episode")
    assert [video.shape for video in videos] == [(1, 4, 3, 8, 6), (1, 3, 3, 8, 6)]
    assert videos[0][0, :, 0, 0, 0].tolist() == [0, 1, 2, 3]
    assert isinstance(recorder, VIDEO[library])


def test_a_recorder_of_steps_in_an_env(tmp_path):
    recorder = rlcore.TensorDictRecorder(tmp_path / "steps", skip_reset=False, skip=1, in_keys=["observation"])
    made = envs.TransformedEnv(env(), recorder)
    made.rollout(2)
    made.transform.dump(suffix="a")
    saved = torch.load(tmp_path / "steps_a_tensordict.t", weights_only=True)
    assert saved["entries"]["observation"].flatten().tolist() == [0, 1, 2]


def test_a_validation_hook_dumps_the_video_of_its_env(batch, make_trainer):
    logger = Videos()
    made = envs.TransformedEnv(env(), rlcore.VideoRecorder(logger, tag="validation"))
    trainer = make_trainer("rlcore", [batch(2, 4)], total_frames=8)
    policy = TensorDictModule(lambda observation: torch.tensor([1, 0]), in_keys=["observation"], out_keys=["action"])
    hook = rlcore.LogValidationReward(record_interval=1, record_frames=3, policy_exploration=policy, environment=made)
    hook.register(trainer)
    trainer.train()
    assert [video.shape[1] for _, video in logger.videos] == [4]


def test_without_their_envs_or_in_a_subclass_it_is_a_plain_object(monkeypatch):
    class Mine(rlcore.VideoRecorder):
        pass

    assert not isinstance(Mine(None, "tag"), torch.nn.Module)
    assert isinstance(rlcore.VideoRecorder(None, "tag", in_keys=None, max_frames=None), torch.nn.Module)
    monkeypatch.delitem(__import__("sys").modules, "torchrl.envs")
    assert type(rlcore.VideoRecorder(None, "tag")) is rlcore.VideoRecorder


def test_their_loggers_take_our_videos(tmp_path):
    logger = loggers.CSVLogger("exp", log_dir=str(tmp_path), video_format="pt")
    recorder = rlcore.VideoRecorder(logger, tag="episode")
    made = envs.TransformedEnv(env(), recorder)
    made.rollout(2)
    recorder.dump()
    assert len(list((tmp_path / "exp" / "videos").iterdir())) == 1


BASES = {"torchrl": loggers.Logger, "rlcore": rlcore.loggers.Logger}


def test_a_logger_of_a_script_derives_from_the_base(library, batch, make_trainer):
    class Mine(BASES[library]):
        def _create_experiment(self):
            return []

        def log_scalar(self, name, value, step=None):
            self.experiment.append((name, float(value), step))

        def log_video(self, name, video, step=None, **options):
            pass

        def log_hparams(self, cfg):
            pass

        def log_histogram(self, name, data, **options):
            pass

        def __repr__(self):
            return "Mine"

    logger = Mine(exp_name="exp", log_dir="dir")
    trainer = make_trainer(library, [batch(2, 4)] * 2, total_frames=16, logger=logger)
    trainer.register_op("post_steps_log", lambda batch: {"mine": 2.0})
    trainer.train()
    assert [row for row in logger.experiment if row[0] == "mine"] == [("mine", 2.0, 8), ("mine", 2.0, 16)]
    assert (logger.exp_name, logger.log_dir) == ("exp", "dir")


def test_every_logger_derives_from_the_base(tmp_path):
    for name in ("CSVLogger", "TensorboardLogger"):
        logger = getattr(rlcore.loggers, name)("exp", log_dir=str(tmp_path))
        assert isinstance(logger, rlcore.loggers.Logger)
        logger.close()


@pytest.mark.parametrize("bins", ["auto", "tensorflow", 5])
def test_histograms_in_tensorboard_take_bins(library, tmp_path, bins):
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    kind = loggers.TensorboardLogger if library == "torchrl" else rlcore.loggers.TensorboardLogger
    logger = kind("exp", log_dir=str(tmp_path))
    logger.log_histogram("numbers", np.arange(16.0), step=3, bins=bins)
    logger.experiment.flush()
    events = accumulators.EventAccumulator(str(tmp_path / "exp"), size_guidance={"histograms": 0})
    events.Reload()
    (found,) = events.Histograms("numbers")
    assert (found.step, found.histogram_value.num, found.histogram_value.sum) == (3, 16, 120)
    if bins != "tensorflow":
        assert len([count for count in found.histogram_value.bucket if count]) == 5
