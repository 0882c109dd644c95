from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch

from rlcore import ConfigError, EnvError, hookimpl

EVALUATOR = {"use": "episodes", "episodes": 3, "seed": 50}


def weights(run):
    return [parameter.detach().clone() for parameter in run.trainer.model.parameters()]


def test_an_evaluation_is_what_playing_by_hand_gives(build):
    run = build(evaluator=EVALUATOR)
    run.trainer.train()
    result = run.trainer.last_evaluation
    assert result.seeds == (50, 51, 52)
    policy = run.trainer.model.policy
    for seed, expected, length in zip(result.seeds, result.returns, result.lengths, strict=True):
        env = gymnasium.make("CartPole-v1")
        observation, _ = env.reset(seed=seed)
        total, steps, over = 0.0, 0, False
        while not over:
            action = policy.mode(torch.from_numpy(observation)[None])
            observation, reward, terminated, truncated, _ = env.step(int(action))
            total, steps, over = total + reward, steps + 1, terminated or truncated
        assert (total, steps) == (expected, length)


def test_evaluating_twice_gives_the_same(build):
    trainer = build(evaluator=EVALUATOR).trainer
    assert trainer.evaluate() == trainer.evaluate()


@pytest.mark.parametrize("transform", [[], [{"use": "observation-norm", "frames": 50}]])
def test_evaluating_does_not_change_the_training(build, transform):
    often = build(evaluator=EVALUATOR | {"every": 32}, transform=transform)
    never = build(transform=transform)
    often.trainer.train()
    never.trainer.train()
    assert all(map(torch.equal, weights(often), weights(never)))
    assert often.trainer.progress == never.trainer.progress


def test_the_best_evaluation_is_kept(build):
    results = []

    class Note:
        @hookimpl
        def evaluation(self, result):
            results.append(result)

    trainer = build([Note()], evaluator=EVALUATOR | {"every": 32}, optimizer=[{"use": "adam", "lr": 0.05}]).trainer
    trainer.train()
    assert len(results) == 4
    assert trainer.best_evaluation.mean_return == max(result.mean_return for result in results)
    assert trainer.last_evaluation is results[-1]


def test_without_a_start_and_an_interval_there_is_one_evaluation_at_the_end(build):
    results = []

    class Note:
        @hookimpl
        def evaluation(self, result):
            results.append(result.frames)

    build([Note()], evaluator=EVALUATOR | {"at_start": False}).trainer.train()
    assert results == [96]


def test_without_an_evaluator_evaluating_says_what_to_add(build):
    with pytest.raises(RuntimeError, match=r"no evaluator: add a section \[evaluator\]"):
        build().trainer.evaluate()


def test_a_natively_vectorised_env_is_evaluated_over_whole_episodes(build):
    native = {"use": "gymnasium", "id": "CartPole-v1", "vectorization": "native", "max_episode_steps": 7}
    run = build(env=native, evaluator=EVALUATOR)
    result = run.trainer.evaluate()
    assert result.lengths == (7, 7, 7), "the untrained pole stands for seven steps"
    assert result.returns == (7.0, 7.0, 7.0)


def test_evaluation_uses_the_statistics_of_training(build):
    run = build(evaluator=EVALUATOR, transform=[{"use": "observation-norm", "frames": 50}])
    (norm,) = run.trainer.transforms
    before = norm.state_dict()
    seen = []
    mode = run.trainer.model.policy.mode
    run.trainer.model.policy.mode = lambda observation: (seen.append(observation.clone()), mode(observation))[1]
    run.trainer.evaluate()
    first = np.stack([gymnasium.make("CartPole-v1").reset(seed=seed)[0] for seed in (50, 51, 52)])
    assert np.allclose(seen[0].numpy(), (first - before["mean"]) * before["scale"])
    assert all(np.array_equal(before[key], norm.state_dict()[key]) for key in before)


@pytest.fixture
def endless():
    """Register an env of which no episode ends, and that declares no limit."""

    class Endless(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.zeros(1, np.float32), {}

        def step(self, action):
            return np.zeros(1, np.float32), 1.0, False, False, {}

    gymnasium.register("Endless-v0", Endless)
    yield {"use": "gymnasium", "id": "Endless-v0"}
    del gymnasium.registry["Endless-v0"]


def test_an_episode_without_an_end_is_cut_aloud(build, endless, caplog):
    run = build(env=endless, evaluator=EVALUATOR | {"max_episode_steps": 25})
    assert "declares no step limit" not in caplog.text
    result = run.trainer.evaluate()
    assert (result.returns, result.lengths) == ((25.0,) * 3, (25,) * 3)
    assert "env 'Endless-v0': 3 of 3 episodes had no end after 25 steps and were cut there" in caplog.text


def test_an_env_without_a_limit_is_named_before_the_first_frame(build, endless, caplog, monkeypatch):
    caplog.set_level("INFO")
    run = build(env=endless, evaluator=EVALUATOR)
    assert run.trainer.progress.frames == 0
    assert (
        "env 'Endless-v0' declares no step limit: an episode of an evaluation that does not end is cut" in caplog.text
    )
    monkeypatch.setattr("rlcore_plugin_rollout.playing.LONGEST", 30)
    assert run.trainer.evaluate().lengths == (30,) * 3
    caplog.clear()
    build(env=endless | {"max_episode_steps": 40}, evaluator=EVALUATOR)
    assert "declares no step limit" not in caplog.text


class Broken(gymnasium.Env):
    """Has a step, or what is seen after it, that is not finite."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, reward=1.0, seen=0.0, leaf=False):
        self.reward, self.seen, self.leaf = float(reward), float(seen), leaf
        box = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)
        self.observation_space = gymnasium.spaces.Dict(a=box, b=gymnasium.spaces.Discrete(3)) if leaf else box

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._seen(0.0), {}

    def step(self, action):
        self.steps += 1
        here = self.steps == 3
        return self._seen(self.seen if here else 0.0), self.reward if here else 1.0, self.steps == 5, False, {}

    def _seen(self, number):
        array = np.array([number, 0, 0, 0], np.float32)
        return {"a": array, "b": 1} if self.leaf else array


@pytest.mark.parametrize("leaf", [False, True])
@pytest.mark.parametrize(
    ("broken", "what"),
    [({"reward": "nan"}, "a reward"), ({"reward": "inf"}, "a reward"), ({"seen": "nan"}, "an observation")],
)
def test_what_is_not_finite_in_an_evaluation_is_an_error(broken, what, leaf, build, monkeypatch):
    monkeypatch.setitem(gymnasium.registry, "Broken-v0", gymnasium.envs.registration.EnvSpec("Broken-v0", Broken))
    env = {"use": "gymnasium", "id": "Broken-v0", "kwargs": {**broken, "leaf": leaf}}
    trainer = build(env=env, evaluator=EVALUATOR).trainer
    with pytest.raises(EnvError, match=f"'Broken-v0': {what}.* is not finite"):
        trainer.evaluate()


def test_what_an_env_does_after_its_episode_does_not_count(build, monkeypatch):
    """Its row goes on while others play, and may be anything."""

    class After(Broken):
        def reset(self, *, seed=None, options=None):
            self.length = {None: 0, EVALUATOR["seed"]: 3}.get(seed, 5)  # 0: an episode after the one that counts
            return super().reset(seed=seed, options=options)

        def step(self, action):
            self.steps += 1
            return self._seen(0.0), 1.0 if self.length else np.nan, self.steps == (self.length or 5), False, {}

    monkeypatch.setitem(gymnasium.registry, "After-v0", gymnasium.envs.registration.EnvSpec("After-v0", After))
    after = build(env={"use": "gymnasium", "id": "After-v0"}, evaluator=EVALUATOR).trainer.evaluate()
    assert after.returns == (3.0, 5.0, 5.0)


class Empty(Broken):
    def __init__(self):
        super().__init__()
        self.observation_space = gymnasium.spaces.Box(-1, 1, (0,), np.float32)


def test_observations_without_numbers_are_refused(build, monkeypatch):
    monkeypatch.setitem(gymnasium.registry, "Empty-v0", gymnasium.envs.registration.EnvSpec("Empty-v0", Empty))
    with pytest.raises(ConfigError, match=r"'Empty-v0' observes Box.* has no numbers"):
        build(env={"use": "gymnasium", "id": "Empty-v0"})
