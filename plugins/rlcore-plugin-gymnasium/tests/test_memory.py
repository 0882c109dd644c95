"""Envs that remember earlier episodes: their memory is restored, or the run says beforehand that it is not exact."""

import importlib.util
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from rlcore_plugin_gymnasium.config import Config
from rlcore_plugin_gymnasium.env import make
from rlcore_plugin_testing import difference, make_run, through_checkpoint

from rlcore.types import Context


def _load(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


KINDS = _load("remembering")
NAMES = [kind.__name__ for kind in KINDS.REMEMBERING]
RUN = {
    "model": {"use": "mlp", "hidden": [4]},
    "loss": {"use": "ppo"},
    "estimator": {"use": "ppo:gae"},
    "evaluator": [],
}


@pytest.fixture(autouse=True, scope="module")
def _registered():
    before = dict(gymnasium.registry)
    KINDS.register()
    yield
    gymnasium.registry.clear()
    gymnasium.registry.update(before)


def env_of(name, **config):
    return make(Config(id=f"remembering/{name}-v0", **config), Context.alone("tests"))


def steps(env, count, seed):
    """Return everything that `count` steps give, the infos of ends too."""
    generator = np.random.default_rng(seed)
    seen = []
    for _ in range(count):
        step = env.step(generator.integers(2, size=env.spec.num_envs))
        seen.append([*(np.array(part) for part in step[:4]), {str(k): repr(v) for k, v in step.infos.items()}])
    return seen


@pytest.mark.parametrize("name", [name for name in NAMES if name not in KINDS.REFUSED])
def test_what_an_env_remembers_goes_on(name):
    used, other = env_of(name, num_envs=2), env_of(name, num_envs=2)
    assert used.inexact() is None
    assert other.inexact() is None
    used.reset(seed=3)
    other.reset(seed=4)
    steps(used, 607, seed=1)
    steps(other, 5, seed=2)
    other.load_state_dict(through_checkpoint(used.state_dict()))
    assert other.unrestored() is None
    where = difference(steps(used, 500, seed=5), steps(other, 500, seed=5))
    assert where is None, where
    assert difference(used.state_dict(), other.state_dict()) is None, "a second resume begins from the same"


@pytest.mark.parametrize(("name", "where"), KINDS.REFUSED.items())
def test_what_cannot_go_on_is_said_before_the_run(name, where):
    reason = env_of(name).inexact()
    assert "it remembers earlier episodes (" in reason or "its classes or modules remember earlier episodes (" in reason
    assert where in reason


def test_a_memory_that_grows_too_large_is_said_when_it_does():
    env = env_of("SlowHoarder")
    assert env.inexact() is None
    env.reset(seed=1)
    steps(env, 1500, seed=1)
    assert "remembers more of earlier episodes than can be saved" in env.inexact()


@pytest.mark.parametrize("name", [*NAMES, "ForgetsForInfos"])
def test_a_resumed_run_equals_an_uninterrupted_one_or_says_that_it_does_not(tmp_path, name):
    sections = {**RUN, "env": {"use": "gymnasium", "id": f"remembering/{name}-v0", "num_envs": 2}}

    def run(folder, *overrides, **options):
        return make_run("run.total_frames=128", *overrides, sections=sections, folder=tmp_path / folder, **options)

    whole = run("whole")
    whole.trainer.train()
    part = run("part")
    part.trainer.stop_at = 64
    part.trainer.train()
    resumed = run("part", resume=True)
    resumed.trainer.train()
    (*_, expected), (*_, found) = (each.trainer.parts.store.entries() for each in (whole, resumed))
    assert found.manifest["exact"] == (name not in KINDS.REFUSED)
    if found.manifest["exact"]:
        assert found.manifest["digest"] == expected.manifest["digest"]


def test_what_no_trial_shows_is_said_at_the_resume(tmp_path, caplog):
    sections = {**RUN, "env": {"use": "gymnasium", "id": "remembering/Lucky-v0"}}
    first = make_run("run.total_frames=512", sections=sections, folder=tmp_path)
    first.trainer.stop_at = 480
    first.trainer.train()
    assert first.trainer.parts.store.entries()[-1].manifest["exact"]
    assert first.trainer.parts.collector._env._envs[0].unwrapped.luck == 1.0
    resumed = make_run("run.total_frames=512", sections=sections, folder=tmp_path, resume=True)
    assert "exact = false: env 'remembering/Lucky-v0' remembers" in caplog.text
    assert "Lucky.luck" in caplog.text
    resumed.trainer.train()
    manifest = resumed.trainer.parts.store.entries()[-1].manifest
    assert not manifest["exact"]
    assert "Lucky.luck" in manifest["inexact"][0]
    assert resumed.trainer.collector.dropped_episodes == 0, "the running episode goes on all the same"


WRAPPERS = {
    "RecordEpisodeStatistics": gymnasium.wrappers.RecordEpisodeStatistics,
    "NormalizeObservation": gymnasium.wrappers.NormalizeObservation,
    "NormalizeReward": gymnasium.wrappers.NormalizeReward,
    "TimeLimit": lambda env: gymnasium.wrappers.TimeLimit(env, 9),
    "TimeAwareObservation": gymnasium.wrappers.TimeAwareObservation,
    "FrameStackObservation": lambda env: gymnasium.wrappers.FrameStackObservation(env, 3),
    "DelayObservation": lambda env: gymnasium.wrappers.DelayObservation(env, 2),
    "StickyAction": lambda env: gymnasium.wrappers.StickyAction(env, 0.3),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers_of_gymnasium_raise_no_false_alarm(name):
    gymnasium.register(f"remembering/{name}-v0", lambda: WRAPPERS[name](gymnasium.make("CartPole-v1")))
    used, other = env_of(name), env_of(name)
    assert (used.inexact(), other.inexact()) == (None, None)
    used.reset(seed=3)
    seen = steps(used, 150, seed=1)
    assert any(step[4] for step in seen) == (
        name == "RecordEpisodeStatistics" or any(step[2] | step[3] for step in seen)
    )
    other.load_state_dict(through_checkpoint(used.state_dict()))
    assert other.unrestored() is None
    found = [[step[:4] for step in steps(env, 100, seed=5)] for env in (used, other)]
    assert difference(*found) is None


@pytest.mark.parametrize("id_", ["FrozenLake-v1", "CliffWalking-v1", "MountainCarContinuous-v0"])
def test_other_envs_of_gymnasium_raise_no_false_alarm(id_):
    assert make(Config(id=id_), Context.alone("tests")).inexact() is None


def test_nothing_is_taken_of_an_env_that_remembers_nothing():
    env = make(Config(id="CartPole-v1"), Context.alone("tests"))
    env.inexact()
    env.reset(seed=1)
    assert env.state_dict()["envs"][0]["memory_before"] is None
