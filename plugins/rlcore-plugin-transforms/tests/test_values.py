"""What the transforms return through the collector, against plain NumPy definitions, for both reset modes.

An observation of the toy env is `[t / 10, ...]` with `t` the steps of its episode, which tells where episodes begin.
"""

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_testing import difference, make_run
from rlcore_plugin_transforms.frame_stack import FrameStack
from rlcore_plugin_transforms.moments import Moments
from rlcore_plugin_transforms.observation_norm import RunningObservationNorm
from rlcore_plugin_transforms.time_feature import TimeFeature
from tensordict import TensorDict

from rlcore.errors import ConfigError, EnvError

MODES = pytest.mark.parametrize("reset_mode", ["same_step", "next_step"])


class Recorder:
    """Stands before the transforms and keeps what the env gave."""

    def __init__(self):
        self.steps, self.finals, self.batches = [], {}, []

    def step(self, observation, first):
        self.steps.append(np.array(observation))
        return observation

    def final(self, observation, env_index):
        # the step that follows gives the observation of the next episode
        self.finals[len(self.steps) - 1, env_index] = np.array(observation)
        return observation

    def batch(self, batch):
        self.batches.append(batch.clone())
        return batch


class Collected:
    """Three batches of a run with a transform, all `[time, env, ...]`, and what the env gave."""

    def __init__(self, transform, reset_mode):
        env = {"use": "testing:toy", "num_envs": 3, "reset_mode": reset_mode}
        sections = {"env": env, "collector": {"use": "local", "frames_per_batch": 21}, "transform": [transform]}
        self.trainer = make_run(sections=sections).trainer
        recorder = Recorder()
        self.trainer.transforms.insert(0, recorder)
        self.batches = []
        for _ in range(3):
            batch = self.trainer.collector.collect().clone()
            for part in self.trainer.transforms:
                batch = part.batch(batch)
            self.batches.append(batch)
        self.given = recorder.batches
        self.raw = np.stack(recorder.steps)
        self.finals = recorder.finals
        self.raw_next = self.raw[1:].copy()
        for place, observation in recorder.finals.items():
            self.raw_next[place] = observation
        self.elapsed = np.rint(self.raw[..., 0] * 10).astype(int)
        self.elapsed_next = np.rint(self.raw_next[..., 0] * 10).astype(int)
        assert len(self.raw) == 22
        assert (self.elapsed[1:] == 0).sum() >= 9, "too few episodes to prove anything"
        assert bool(self.finals) == (reset_mode == "same_step")

    def column(self, *key):
        return np.concatenate([batch[key].transpose(0, 1).numpy() for batch in self.batches])


@MODES
@pytest.mark.parametrize("frames", [1, 2, 4])
def test_a_stack_holds_the_newest_observations_of_its_episode(frames, reset_mode):
    found = Collected({"use": "transforms:frame-stack", "frames": frames}, reset_mode)
    observation, following = found.column("observation"), found.column("next", "observation")
    for time, env in np.ndindex(21, 3):
        back = [min(j, found.elapsed[time, env]) for j in reversed(range(frames))]
        expected = np.concatenate([found.raw[time - j, env] for j in back])
        assert np.array_equal(observation[time, env], expected), (time, env)
        back = [min(j, found.elapsed_next[time, env]) for j in reversed(range(1, frames))]
        older = [found.raw[time + 1 - j, env] for j in back]
        expected = np.concatenate([*older, found.raw_next[time, env]])
        assert np.array_equal(following[time, env], expected), (time, env)


@MODES
def test_the_time_is_the_share_of_the_limit(reset_mode):
    found = Collected({"use": "transforms:time-feature"}, reset_mode)
    limit = found.trainer.collector._env.spec.max_episode_steps
    for key, raw, elapsed in (
        (("observation",), found.raw[:-1], found.elapsed[:-1]),
        (("next", "observation"), found.raw_next, found.elapsed_next),
    ):
        seen = found.column(*key)
        assert np.array_equal(seen[..., :-1], raw)
        np.testing.assert_allclose(seen[..., -1], elapsed / limit, rtol=1e-6)
    assert found.column("next", "observation")[..., -1].max() == 1


def test_the_time_does_not_go_beyond_one():
    """In an evaluation, an env whose episode is over goes on until those of the others are."""
    time = make_run(sections={"transform": [{"use": "transforms:time-feature"}]}).trainer.transforms[0]
    observation, first = np.zeros((1, 3), dtype=np.float32), np.zeros(1, dtype=bool)
    assert [time.step(observation, first)[0, -1] for _ in range(8)][4:] == pytest.approx([0.8, 1, 1, 1])
    assert time.final(observation[0], 0)[-1] == 1


@MODES
@pytest.mark.parametrize("clip", [10.0, 0.7, 0.0])
def test_observations_are_normalised_with_what_was_seen_until_then(clip, reset_mode):
    found = Collected({"use": "transforms:running-observation-norm", "clip": clip}, reset_mode)

    def expected(raw, time):
        seen = found.raw[: time + 1].reshape(-1, 3).astype(np.float64)
        value = (raw - seen.mean(0)) / np.sqrt(seen.var(0) + 1e-8)
        return np.clip(value, -clip, clip) if clip else value

    observation, following = found.column("observation"), found.column("next", "observation")
    for time in range(21):
        np.testing.assert_allclose(observation[time], expected(found.raw[time], time), atol=1e-5)
        for env in range(3):
            if (time, env) in found.finals:  # it comes before the observations of its step are learnt from
                wanted = expected(found.finals[time, env], time)
            else:
                wanted = expected(found.raw[time + 1, env], time + 1)
            np.testing.assert_allclose(following[time, env], wanted, atol=1e-5)


@MODES
@pytest.mark.parametrize("clip", [10.0, 0.3, 0.0])
def test_rewards_are_divided_by_the_deviation_of_the_returns(clip, reset_mode):
    found = Collected({"use": "transforms:reward-norm", "gamma": 0.9, "clip": clip}, reset_mode)
    running, returns, ends = np.zeros(3), [], set()
    for given, changed in zip(found.given, found.batches, strict=True):
        reward, done = given["next", "reward"].double(), given["next", "done"]
        mask = given["collector", "mask"] if reset_mode == "next_step" else torch.ones_like(done)
        for env, time in np.ndindex(3, reward.shape[1]):
            if not mask[env, time]:
                continue
            running[env] = 0.9 * running[env] + float(reward[env, time])
            returns.append(running[env])
            if done[env, time]:
                ends.add("terminated" if given["next", "terminated"][env, time] else "truncated")
                running[env] = 0
        expected = reward / np.sqrt(np.var(returns) + 1e-8)
        if clip:
            expected = expected.clamp(-clip, clip)
        torch.testing.assert_close(changed["next", "reward"].double(), expected, atol=1e-6, rtol=1e-5)
    assert ends == {"terminated", "truncated"}


@MODES
def test_rewards_are_scaled_and_shifted(reset_mode):
    found = Collected({"use": "transforms:reward-scale", "scale": -2.0, "shift": 0.5}, reset_mode)
    for given, changed in zip(found.given, found.batches, strict=True):
        assert torch.equal(changed["next", "reward"], given["next", "reward"] * -2 + 0.5)
        for key in ("reward", "done"):
            assert changed["next", key].dtype == given["next", key].dtype


@pytest.mark.parametrize("use", ["reward-scale", "reward-norm"])
def test_returns_of_episodes_stay_raw(use):
    keys = {"scale": 100.0} if use == "reward-scale" else {}
    trainer = make_run(sections={"transform": [{"use": f"transforms:{use}", **keys}]}).trainer
    batch = trainer.collector.collect()
    for part in trainer.transforms:
        part.batch(batch)
    episodes = list(trainer.collector.episodes())
    assert episodes
    assert all(e.return_ == e.length * (e.length + 1) / 2 for e in episodes)


def test_moments_of_parts_are_those_of_the_whole():
    values = np.random.default_rng(1).normal(1e4, 1e-2, (100, 2)).astype(np.float32)
    moments = Moments()
    for part in np.split(values, [1, 1, 7, 60]):
        moments.add(part)
    whole = values.astype(np.float64)
    assert moments.count == 100
    np.testing.assert_allclose(moments.mean, whole.mean(0), rtol=1e-14)
    np.testing.assert_allclose(moments.deviation(0.0), whole.std(0), rtol=1e-8)


def test_a_new_first_dimension_holds_the_same_as_the_last():
    first, last = (
        FrameStack(FrameStack.Config(frames=3, dimension=dimension), None) for dimension in ("first", "last")
    )
    space = gymnasium.spaces.Box(0, 255, (5, 4, 2), np.uint8)
    assert first.observation_space(space).shape == (3, 5, 4, 2)
    assert last.observation_space(space).shape == (5, 4, 6)
    assert first.observation_space(space).dtype == last.observation_space(space).dtype == np.uint8
    generator = np.random.default_rng(2)
    for begins in ([True, True], [False, False], [False, True], [False, False]):
        image = generator.integers(0, 255, (2, 5, 4, 2), dtype=np.uint8)
        stacks = first.step(image, np.array(begins))
        assert stacks.shape == (2, 3, 5, 4, 2)
        assert np.array_equal(last.step(image, np.array(begins)), np.concatenate(list(stacks.swapaxes(0, 1)), axis=-1))
        final, joined = first.final(image[0], 1), last.final(image[0], 1)
        assert np.array_equal(final, np.concatenate((stacks[1, 1:], image[:1])))
        assert np.array_equal(joined, np.concatenate(list(final), axis=-1))


def test_a_frozen_copy_has_a_memory_of_its_own():
    trainer = make_run(sections={"transform": [{"use": "transforms:frame-stack"}, {"use": "time-feature"}]}).trainer
    trainer.collector.collect()
    frozen = [transform.frozen() for transform in trainer.transforms]
    observation = np.full((2, 3), 0.5, dtype=np.float32)
    for part in frozen:
        observation = part.step(observation, np.zeros(2, dtype=bool))
    assert np.array_equal(observation, np.tile(np.array([0.5] * 12 + [0.0], dtype=np.float32), (2, 1)))


def test_an_evaluation_may_have_another_number_of_envs():
    uses = [{"use": "transforms:frame-stack"}, {"use": "transforms:time-feature"}]
    trainer = make_run(sections={"transform": uses}).trainer
    trainer.collector.collect()
    before = [transform.state_dict() for transform in trainer.transforms]
    assert trainer.evaluate().lengths == (3, 5, 4)
    assert difference(before, [transform.state_dict() for transform in trainer.transforms]) is None


def test_frozen_rewards_are_divided_and_not_learnt_from():
    found = Collected({"use": "transforms:reward-norm", "clip": 0.0}, "same_step")
    transform = found.trainer.transforms[1]
    frozen, before = transform.frozen(), transform.state_dict()
    results = [frozen.batch(batch)["next", "reward"] for batch in (found.given[0], found.given[1], found.given[0])]
    assert torch.equal(results[0], results[2])
    assert difference(before, transform.state_dict()) is None
    assert not torch.equal(results[0], found.given[0]["next", "reward"])
    transform.batch(found.given[0])
    assert torch.equal(frozen.batch(found.given[0])["next", "reward"], results[0]), "it shares what the original learns"


def test_a_masked_step_neither_discounts_nor_adds():
    keys = {"use": "transforms:reward-norm", "gamma": 0.5}
    transform = make_run(sections={"transform": [keys]}).trainer.transforms[0]
    reward, mask = torch.tensor([[[1.0], [100.0], [1.0]]]), torch.tensor([[[True], [False], [True]]])
    following = {"reward": reward, "done": torch.zeros_like(mask)}
    batch = TensorDict({"next": following, "collector": {"mask": mask}}, batch_size=[1, 3])
    found = transform.batch(batch)["next", "reward"]  # the returns are 1 and 1.5
    torch.testing.assert_close(found[mask], torch.tensor([4.0, 4.0]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_observation_that_is_not_finite_is_an_error_and_leaves_the_statistics(bad):
    transform = make_run(sections={"transform": [{"use": "transforms:running-observation-norm"}]}).trainer.transforms[0]
    first = np.ones(2, dtype=bool)
    transform.step(np.ones((2, 3), dtype=np.float32), first)
    before = transform.state_dict()
    spoilt = np.ones((2, 3), dtype=np.float32)
    spoilt[1, 2] = bad
    with pytest.raises(EnvError, match=r"'toy'.*not finite"):
        transform.step(spoilt, first)
    assert difference(before, transform.state_dict()) is None


@pytest.mark.parametrize("use", ["running-observation-norm", "frame-stack", "time-feature"])
def test_observations_that_are_no_box_are_refused(use):
    transform = make_run(sections={"transform": [{"use": f"transforms:{use}"}]}).trainer.transforms[0]
    with pytest.raises(ConfigError, match=f"{use} needs observations in a Box"):
        transform.observation_space(gymnasium.spaces.Discrete(3))


def test_shapes_that_do_not_fit_are_refused():
    image, single = gymnasium.spaces.Box(0, 1, (4, 4)), gymnasium.spaces.Box(0, 1, ())
    time = make_run(sections={"transform": [{"use": "transforms:time-feature"}]}).trainer.transforms[0]
    assert isinstance(time, TimeFeature)
    with pytest.raises(ConfigError, match="one dimension"):
        time.observation_space(image)
    with pytest.raises(ConfigError, match="dimension = 'first'"):
        FrameStack(FrameStack.Config(), None).observation_space(single)


@pytest.mark.parametrize("given", [np.float64, np.float32, np.int16])
def test_the_time_keeps_the_precision_of_floats(given):
    time = make_run(sections={"transform": [{"use": "transforms:time-feature"}]}).trainer.transforms[0]
    space = time.observation_space(gymnasium.spaces.Box(-5, 5, (2,), given))
    seen = time.step(np.ones((1, 2), dtype=given), np.ones(1, dtype=bool))
    assert seen.dtype == space.dtype == (np.float64 if given == np.float64 else np.float32)
    assert (space.low[-1], space.high[-1]) == (0, 1)


def test_the_clip_bounds_the_space():
    transform = make_run(sections={"transform": [{"use": "transforms:running-observation-norm", "clip": 3.0}]}).trainer
    (norm,) = transform.transforms
    assert isinstance(norm, RunningObservationNorm)
    space = norm.observation_space(gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64))
    assert (space.low.tolist(), space.high.tolist(), space.dtype) == ([-3, -3], [3, 3], np.float32)
