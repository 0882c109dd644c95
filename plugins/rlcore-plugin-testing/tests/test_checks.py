"""What `check_env_specs` accepts, and what it says of an env that does not do what its spec declares."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from rlcore_plugin_testing.toy import ToyEnv

from rlcore import EnvError, Factory, check_env_specs


def toy(env=ToyEnv, **keys):
    return env(ToyEnv.Config(**keys), None)


class Changed(ToyEnv):
    """Changes the third step after a reset."""

    def reset(self, seed=None):
        self.steps = 0
        return super().reset(seed)

    def step(self, action):
        self.steps += 1
        step = super().step(action)
        return self.change(step) if self.steps == 3 else step

    def change(self, step):
        raise NotImplementedError


class WideObservation(Changed):
    def change(self, step):
        return step._replace(observation=step.observation.astype(np.float64))


class LongObservation(Changed):
    def change(self, step):
        return step._replace(observation=np.zeros((2, 4), dtype=np.float32))


class ListObservation(Changed):
    def change(self, step):
        return step._replace(observation=step.observation.tolist())


class InfiniteObservation(Changed):
    def change(self, step):
        step.observation[1, 2] = np.nan
        return step


class NumberFlags(Changed):
    def change(self, step):
        return step._replace(terminated=step.terminated.astype(np.float32))


class ColumnReward(Changed):
    def change(self, step):
        return step._replace(reward=step.reward[:, None])


class WholeReward(Changed):
    def change(self, step):
        return step._replace(reward=step.reward.astype(np.int64))


class InfiniteReward(Changed):
    def change(self, step):
        return step._replace(reward=np.array([1.0, np.inf]))


class NoFinal(Changed):
    def change(self, step):
        return step._replace(final_observation={})


class MovedAction(Changed):
    def step(self, action):
        action += 1
        return super().step(action)

    def change(self, step):
        return step


class Unseeded(Changed):
    starts = 0.0

    def change(self, step):
        Unseeded.starts += 1
        return step._replace(reward=step.reward + Unseeded.starts)


class RewardedReset(ToyEnv):
    def step(self, action):
        over = self._over.copy()
        step = super().step(action)
        step.reward[over] = 1
        return step


class OutOfBounds(ToyEnv):
    def __init__(self, config, context):
        super().__init__(config, context)
        space = gymnasium.spaces.Box(-0.2, 0.2, (3,), np.float32)
        self.spec = replace(self.spec, observation_space=space)

    def reset(self, seed=None):
        return np.clip(super().reset(seed), -0.2, 0.2)

    def step(self, action):
        step = super().step(np.zeros_like(action))
        return step._replace(observation=step.observation * np.float32([1, 0, 0]))


class TooLong(ToyEnv):
    def __init__(self, config, context):
        super().__init__(config, context)
        self.spec = replace(self.spec, max_episode_steps=4)


@pytest.mark.parametrize("reset_mode", ["same_step", "next_step"])
@pytest.mark.parametrize("actions", ["unbounded", "bounded", "discrete"])
def test_an_env_that_does_what_it_says_passes(reset_mode, actions):
    check_env_specs(toy(reset_mode=reset_mode, actions=actions), steps=40)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (WideObservation, "step 2: the observation has dtype float64, the space says float32"),
        (LongObservation, r"step 2: the observation has shape \(2, 4\); 2 envs of Box.* have \(2, 3\)"),
        (ListObservation, "step 2: the observation is a list"),
        (InfiniteObservation, "step 2: the observation of env 1 is not finite"),
        (NumberFlags, "step 2: terminated has dtype float32, not bool"),
        (ColumnReward, r"step 2: the reward has shape \(2, 1\)"),
        (WholeReward, "step 2: the reward has dtype int64"),
        (InfiniteReward, "step 2: the reward of env 1 is not finite"),
        (NoFinal, r"step 2: final_observation of the envs \[\], but \[0\] ended"),
        (MovedAction, "step 0: step changed the array of actions"),
        (Unseeded, r"the reward of step 2 after reset\(seed=0\).* differs from one pass to the next"),
        (OutOfBounds, "step 2: the observation of env 1 is outside"),
        (TooLong, "step 4: the episode of env 1 is longer than the 4 steps"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_error_says_what_differed_and_where(env, message):
    with pytest.raises(EnvError, match=rf"^env 'toy'.*{message}"):
        check_env_specs(toy(env), steps=12)


def test_a_reward_in_the_step_that_only_resets_is_refused():
    with pytest.raises(EnvError, match="the step after an end; that step only resets"):
        check_env_specs(toy(RewardedReset, reset_mode="next_step"), steps=12)


def test_the_env_of_a_script_is_checked_as_the_policy_sees_it():
    make = Factory(total_frames=100)
    env = make.env("gymnasium", id="CartPole-v1", num_envs=2)
    make.transform("observation-norm", frames=50)
    make.transform("transforms:frame-stack", frames=3)
    check_env_specs(env)
    assert env.reset(seed=1).shape == (2, 12)


def test_an_env_of_another_library_is_refused():
    with pytest.raises(TypeError, match="check_env_specs: a TimeLimit is no env of rlcore; build one with Factory"):
        check_env_specs(gymnasium.make("CartPole-v1", disable_env_checker=True))


def test_an_env_of_torchrl_is_checked_by_its_own_check():
    envs = pytest.importorskip("torchrl.envs")
    check_env_specs(envs.GymEnv("CartPole-v1"))

    class Wrong(envs.GymEnv):
        def _reset(self, *arguments, **keywords):
            first = super()._reset(*arguments, **keywords)
            return first.set("observation", first["observation"][:2])

    with pytest.raises(RuntimeError, match="for key observation"):
        check_env_specs(Wrong("CartPole-v1"))
