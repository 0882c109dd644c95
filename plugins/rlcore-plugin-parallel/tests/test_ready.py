"""Batches of single workers, in the order in which they are done: none is too old, none is lost, none is mixed up."""

import itertools
import multiprocessing
import os
import random
import signal
import time

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_parallel.turns import AT_A_TIME, Turns
from rlcore_plugin_testing import make_run, through_checkpoint

from rlcore import ConfigError, EnvError

from .collecting import ALWAYS, CARTPOLE, NEXT_STEP, collector_of, move

READY = {"mode": "async", "order": "ready", "start_method": "fork", "frames_per_batch": 16, "max_lag": 3}


class Uneven(gymnasium.Env):
    """An env whose steps take longer in worker 1. It observes how many steps it has taken, and in which worker."""

    observation_space = gymnasium.spaces.Box(0, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.steps, self.slow = 0, multiprocessing.current_process().name.endswith("-1")
        return np.array([self.steps, self.slow], np.float32), {}

    def step(self, action):
        time.sleep(0.004 if self.slow else 0.0002)
        self.steps += 1
        return np.array([self.steps, self.slow], np.float32), 1.0, self.steps % 10 == 0, False, {}


gymnasium.register("Uneven-v0", Uneven)
UNEVEN = {"use": "gymnasium", "id": "Uneven-v0", "num_envs": 4, "vectorization": "serial"}


@pytest.mark.parametrize(("num_workers", "max_lag"), list(itertools.product((1, 2, 3, 8), (1, 2, 4, 16))))
def test_no_batch_is_older_than_it_may_be_whatever_the_workers_take(num_workers, max_lag):
    draw = random.Random(num_workers * 100 + max_lag)
    speeds = [draw.choice((1, 1, 3, 30)) for _ in range(num_workers)]
    turns, done, lags = Turns(num_workers, max_lag), [], []
    begun, left = [[] for _ in speeds], [0.0] * num_workers
    for version in range(2000):
        while (worker := turns.begin(version)) is not None:
            begun[worker].append(version)
        assert sum(turns.under_way) <= max_lag + 1
        while (place := turns.take(done, version)) is None:
            collecting = [w for w in range(num_workers) if turns.under_way[w] > done.count(w)]
            assert collecting, "somebody must be at work whose batch may be taken"
            fastest = min(collecting, key=lambda w: left[w])
            for other in collecting:
                left[other] -= left[fastest] if other != fastest else 0
            left[fastest] = speeds[fastest] * draw.expovariate(1)
            done.append(fastest)
        taken = done.pop(place)
        lags.append((taken, version - begun[taken].pop(0)))
    assert min(max_lag, AT_A_TIME * num_workers - 1) <= max(lag for _, lag in lags) <= max_lag
    assert {worker for worker, _ in lags} == set(range(num_workers))


def test_a_worker_that_is_faster_gives_more_batches_and_none_is_too_old():
    collector = collector_of(UNEVEN, **{**READY, "max_lag": 4})
    model, found = collector._context.model, []
    versions = [[parameter.clone() for parameter in model.parameters()]]
    for _ in range(60):
        batch = collector.collect().clone()
        (lag,) = collector.lags
        found.append((collector.worker, lag))
        assert batch.batch_size == (2, 8)
        assert batch["collector", "policy_lag"].shape == (2, 8, 1)
        assert batch["collector", "policy_lag"].unique().tolist() == [lag]
        assert collector.metrics() == {"policy_lag": lag}
        assert batch["observation"][..., 1].unique().tolist() == [float(collector.worker)], "the envs of one worker"
        now = [parameter.clone() for parameter in model.parameters()]
        with torch.no_grad():
            for parameter, value in zip(model.parameters(), versions[-1 - lag], strict=True):
                parameter.copy_(value)
            expected = model.actor.distribution.log_prob(model.actor(batch["observation"]), batch["action"])
            for parameter, value in zip(model.parameters(), now, strict=True):
                parameter.copy_(value)
        torch.testing.assert_close(
            batch["sample_log_prob"], expected, atol=1e-4, rtol=0, msg="not the weights it names"
        )
        move(collector)
        versions.append([parameter.clone() for parameter in model.parameters()])
        collector.update_model()
    collector.close()
    of_fast = sum(worker == 0 for worker, _ in found)
    assert 30 < of_fast < 60
    assert max(lag for _, lag in found) <= 4


def test_steps_of_each_env_follow_one_another_and_episodes_are_its_own():
    collector = collector_of(UNEVEN, **READY)
    steps, episodes = {0: [], 1: []}, []
    for _ in range(20):
        batch = collector.collect().clone()
        steps[collector.worker].append(batch)
        assert {episode.env_index // 2 for episode in collector.episodes()} <= {collector.worker}
        episodes += collector.episodes()
        collector.update_model()
    collector.close()
    for batches in steps.values():
        counted = torch.cat([batch["observation"][..., 0] for batch in batches], dim=1)
        assert torch.equal(counted, torch.arange(counted.shape[1]).expand(2, -1).float())
    assert {episode.length for episode in episodes} == {10}


def test_states_of_a_policy_are_carried_from_batch_to_batch():
    collector = collector_of(NEXT_STEP, model="testing:toy-memory", **{**READY, "frames_per_batch": 24})
    latest = {}
    for _ in range(8):
        batch = collector.collect().clone()
        assert batch["policy_state"].shape[:2] == (2, 12)
        if collector.worker in latest:
            assert torch.equal(latest[collector.worker], batch["policy_state"][:, 0])
        latest[collector.worker] = batch["next", "policy_state"][:, -1]
        collector.update_model()
    collector.close()
    assert len(latest) == 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hangs"])
def test_f6_a_worker_that_is_lost_is_replaced_and_its_episodes_are_counted(number):
    collector = collector_of(UNEVEN, timeout=1, **READY)
    seen = []
    for batch in range(16):
        if batch == 4:
            os.kill(collector.pids()[1], number)
        collector.collect()
        seen.append(collector.worker)
        collector.update_model()
    metrics = collector.metrics()
    collector.close()
    assert metrics["replaced_workers"] == 1
    assert 0 <= metrics["dropped_episodes"] <= 2
    assert 1 in seen[6:], "the one in its place works"


def test_f1_an_env_that_raises_ends_the_run_and_every_worker():
    env = {"use": "testing:faulty", "fault": "raise", "at": 20, "num_envs": 2}
    collector = collector_of(env, **READY)
    pids = collector.pids()
    with pytest.raises(EnvError, match=r"collector worker [01] .* on purpose"):
        all(collector.collect() is not None for _ in range(4))
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_a_resume_begins_new_episodes_and_counts_those_that_it_drops(caplog):
    first, second = (collector_of(UNEVEN, **READY) for _ in range(2))
    for _ in range(4):
        first.collect()
    state = through_checkpoint(first.state_dict())
    first.load_state_dict(state)
    second.load_state_dict(state)
    assert first.dropped_episodes == second.dropped_episodes == state["running"] > 0
    assert first.collect()["observation"][:, 0, 0].tolist() == [0, 0]
    assert second.collect()["observation"][:, 0, 0].tolist() == [0, 0]
    first.close(), second.close()


REPLAY = {"use": "replay", "minibatch_size": 8, "warmup_frames": 0, "replay_ratio": 2.5}


def test_samples_for_each_step_are_those_asked_for_and_the_run_says_that_it_is_not_exact(caplog, tmp_path):
    collector = {**ALWAYS, **READY, "frames_per_batch": 12}
    sections = {"env": CARTPOLE, "collector": collector, "buffer": REPLAY, "loss": {"use": "dqn"}}
    sections |= {"model": {"use": "dqn:q-network", "hidden": [8]}, "estimator": None}
    run = make_run("run.total_frames=1200", folder=tmp_path, sections=sections)
    lags = [max(run.trainer.collector.lags) for _ in run.trainer]
    progress = run.trainer.progress
    assert progress.frames == 1200
    assert progress.updates * 8 == pytest.approx(2.5 * 1200, rel=0.01)
    assert max(lags) <= 3
    assert "exact = false: workers collect ahead of the learner" in caplog.text
    assert not run.trainer.parts.store.entries()[-1].manifest["exact"]


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"buffer": {**REPLAY, "n_steps": 3}}, r"\[buffer\] ReplayBuffer carries something of the running episodes"),
        ({"transform": [{"use": "transforms:reward-norm"}]}, r"\[transform\] RewardNorm carries .* 2 of 4 envs"),
        ({"hook": [{"use": "runners:diagnostics"}]}, r"\[hook\] Diagnostics carries .*order = 'given'"),
        ({"collector": {**ALWAYS, **READY, "mode": "sync"}}, "order = 'ready' with mode = 'sync'"),
        ({"collector": {**ALWAYS, **READY, "frames_per_batch": 15}}, "of which a batch has 2, times frame_skip"),
    ],
)
def test_what_takes_each_batch_for_the_next_of_the_same_envs_is_refused(sections, message):
    base = {"env": CARTPOLE, "model": {"use": "mlp"}, "collector": {**ALWAYS, **READY}}
    with pytest.raises(ConfigError, match=message):
        make_run(sections={**base, **sections})


def test_transforms_that_leave_batches_as_they_are_work():
    transform = [{"use": "transforms:frame-stack", "frames": 3}, {"use": "transforms:time-feature"}]
    collector = collector_of(CARTPOLE, transform=transform, **READY)
    assert collector.collect()["observation"].shape == (2, 8, 13)
    collector.close()


def test_fewer_updates_than_workers_are_said(caplog):
    collector_of(CARTPOLE, **{**READY, "max_lag": 1})
    assert "max_lag = 1 with num_workers = 2 and order = 'ready': workers wait for each other" in caplog.text
