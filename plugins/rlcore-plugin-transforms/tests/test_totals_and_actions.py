"""Totals within episodes, single precision, and actions on their way to the env, against plain definitions."""

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.contracts import TransformContract
from rlcore_plugin_transforms.double_to_float import DoubleToFloat

from rlcore import Factory
from rlcore.errors import ConfigError

TOTALS = [{"use": "transforms:step-counter"}, {"use": "transforms:reward-sum"}]


def batches(transforms, count=3, **env):
    """Return collected batches with what the transforms made of them."""
    keys = {"use": "testing:toy", "num_envs": 3, **env}
    sections = {"env": keys, "collector": {"use": "local", "frames_per_batch": 21}, "transform": transforms}
    trainer = make_run(sections=sections).trainer
    found = []
    for _ in range(count):
        batch = trainer.collector.collect().clone()
        for transform in trainer.transforms:
            batch = transform.batch(batch)
        found.append(batch)
    return found


def column(found, *key):
    return torch.cat([batch[key] for batch in found], dim=1)[..., 0]


@pytest.mark.parametrize("reset_mode", ["same_step", "next_step"])
def test_totals_are_those_of_the_running_episode(reset_mode):
    found = batches(TOTALS, reset_mode=reset_mode)
    done = column(found, "next", "done")
    mask = column(found, "collector", "mask") if reset_mode == "next_step" else torch.ones_like(done)
    reward = column(found, "next", "reward")
    assert done.sum() > 9
    for env in range(3):
        steps, total = 0, 0.0
        for time in range(21):
            place = (env, time)
            assert column(found, "step_count")[place] == steps, place
            assert column(found, "episode_reward")[place] == total, place
            steps += int(mask[place])
            total += float(reward[place])
            assert column(found, "next", "step_count")[place] == steps, place
            assert column(found, "next", "episode_reward")[place] == total, place
            if done[place]:
                steps, total = 0, 0.0
    assert found[0]["step_count"].dtype == torch.int64
    assert found[0]["episode_reward"].dtype == torch.float32


def test_the_last_count_of_an_episode_is_its_length():
    found = batches(TOTALS, episode_lengths=[4, 6])
    ends = column(found, "next", "done")
    assert set(column(found, "next", "step_count")[ends].tolist()) == {4, 6}
    assert set(column(found, "next", "episode_reward")[ends].tolist()) == {10, 21}


def test_the_sum_is_of_the_rewards_as_the_transforms_before_it_leave_them():
    found = batches([{"use": "transforms:reward-scale", "scale": 0.5}, {"use": "transforms:reward-sum"}])
    ends = column(found, "next", "done")
    assert set(column(found, "next", "episode_reward")[ends].tolist()) <= {3.0, 7.5, 5.0}


def test_rollouts_count_from_their_own_beginning():
    make = Factory(total_frames=96)
    env = make.env("testing:toy")
    for name in ("step-counter", "reward-sum"):
        make.transform(f"transforms:{name}")
    for _ in range(2):
        batch = env.rollout(10)
        assert batch["step_count"][0].flatten().tolist() == [0, 1, 2]
        assert batch["next", "episode_reward"][0].flatten().tolist() == [1, 3, 6]


def double_to_float():
    return DoubleToFloat(DoubleToFloat.Config(), None)


def test_doubles_become_floats():
    transform = double_to_float()
    space = transform.observation_space(gymnasium.spaces.Box(-np.inf, 1e300, (2,), np.float64))
    assert (space.dtype, space.high[0]) == (np.float32, np.inf)
    given = np.array([[1.5, 1 / 3]])
    seen = transform.step(given, np.ones(1, dtype=bool))
    assert seen.dtype == transform.final(given[0], 0).dtype == np.float32
    assert np.array_equal(seen, given.astype(np.float32))


def test_what_is_no_double_stays():
    transform = double_to_float()
    space = gymnasium.spaces.Box(0, 255, (2,), np.uint8)
    assert transform.observation_space(space) is space
    given = np.array([[1, 2]], dtype=np.uint8)
    assert transform.step(given, np.ones(1, dtype=bool)) is given
    with pytest.raises(ConfigError, match="double-to-float needs observations in a Box"):
        transform.observation_space(gymnasium.spaces.Discrete(2))


class Taken:
    """Stands before an env and keeps the actions that it gets."""

    def __init__(self, env):
        self.actions, self._step = [], env.step
        env.step = self.step

    def step(self, action):
        self.actions.append(np.array(action))
        return self._step(action)


def acted(*transforms):
    """Return the actions in a batch of Pendulum, whose bounds are -2 and 2, and those that the env got."""
    make = Factory(total_frames=200)
    env = make.env("gymnasium", id="Pendulum-v1")
    for use, keys in transforms:
        make.transform(f"transforms:{use}", **keys)
    make.model("mlp", hidden=[8])
    collector = make.collector(frames_per_batch=100)
    taken = Taken(make.context.env)
    return env, collector.collect()["action"][0].numpy(), np.concatenate(taken.actions)


def test_clipped_actions_reach_the_env_and_those_of_the_policy_the_batch():
    env, chosen, taken = acted(("action-clip", {}))
    assert not env.action_space.is_bounded("below")
    assert np.abs(chosen).max() > 2
    assert np.array_equal(taken, np.clip(chosen, -2, 2))


def test_scaled_actions_span_the_bounds():
    env, chosen, taken = acted(("action-scale", {}))
    assert (env.action_space.low, env.action_space.high) == (-1, 1)
    np.testing.assert_allclose(taken, 2 * chosen, atol=1e-6)


def test_actions_pass_in_the_opposite_order_of_observations():
    _, chosen, taken = acted(("action-scale", {"low": 0.0, "high": 0.5}), ("action-clip", {}))
    np.testing.assert_allclose(taken, np.clip(chosen, 0, 0.5) * 8 - 2, atol=1e-6)
    assert chosen.min() < 0


def test_evaluations_and_rollouts_take_the_same_way():
    def result(transforms):
        make = Factory(total_frames=200)
        env = make.env("gymnasium", id="Pendulum-v1", max_episode_steps=20)
        for use, keys in transforms:
            make.transform(f"transforms:{use}", **keys)
        model = make.model("mlp", hidden=[8])
        model.policy.mode = lambda observation: torch.full((len(observation), 1), 1.0)
        evaluation = make.evaluator(episodes=2).evaluate()
        return evaluation.returns, env.rollout(5, lambda seen: seen.set("action", torch.ones(1, 1)), seed=1)

    plain, scaled = result([]), result([("action-scale", {"low": -2.0, "high": 2.0})])
    doubled = result([("action-scale", {})])
    assert plain[0] == scaled[0] != doubled[0]
    assert torch.equal(plain[1]["next", "reward"], scaled[1]["next", "reward"])
    assert not torch.equal(plain[1]["next", "reward"], doubled[1]["next", "reward"])


def test_select_takes_numbers_in_their_order_and_refuses_those_that_are_not_there():
    def made(indices):
        return TransformContract.of("transforms:select", {"indices": indices})

    select = made([2, 0]).make(made([2, 0]).bench())
    box = select.observation_space(gymnasium.spaces.Box(np.float32([0, 1, 2]), np.float32([3, 4, 5])))
    assert (box.low.tolist(), box.high.tolist()) == ([2, 0], [5, 3])
    assert select.step(np.array([[10, 11, 12], [20, 21, 22]]), None).tolist() == [[12, 10], [22, 20]]
    with pytest.raises(ConfigError, match=r"\[2, 0\] reach beyond the 2 numbers"):
        select.observation_space(gymnasium.spaces.Box(-1, 1, (2,)))
