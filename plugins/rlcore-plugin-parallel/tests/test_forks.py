"""Workers are forked while other threads of the process run."""

from __future__ import annotations

import multiprocessing
import os
import threading

import pytest
import torch
from rlcore_plugin_parallel.forks import wait_for_torch
from rlcore_plugin_testing.toy import ToyEnv

from rlcore import ConfigError

from .collecting import ALWAYS, collector_of

pytestmark = pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="this system has no forks")


def test_a_process_that_is_forked_while_a_thread_seeds_torch_can_seed_it_too():
    lock = torch.cuda._initialization_lock
    wait_for_torch()
    held, over = threading.Event(), threading.Event()

    def seed() -> None:
        with lock:
            held.set()
            over.wait(0.3)

    thread = threading.Thread(target=seed)
    thread.start()
    held.wait()
    process = multiprocessing.get_context("fork").Process(target=torch.manual_seed, args=(1,))
    process.start()
    process.join(20)
    over.set()
    thread.join()
    ended = process.exitcode
    process.kill()
    assert ended == 0, "it waits for a thread that it does not have"
    assert not lock.locked()


@pytest.mark.parametrize(
    "collector", [ALWAYS, {"use": "parallel:workers", "mode": "async", "order": "ready"}, {"use": "parallel:central"}]
)
def test_an_env_that_a_fork_would_leave_without_its_threads_is_refused_before_the_first_frame(collector, monkeypatch):
    monkeypatch.setattr(ToyEnv, "unforkable", "it steps in threads of its own", raising=False)
    env = {"use": "testing:toy", "num_envs": 4}
    with pytest.raises(ConfigError, match=r"start_method = 'fork': the envs '.*' cannot step .* threads of its own; "):
        collector_of(env, **collector, start_method="fork")
    collector_of(env, **collector, start_method="spawn").close()
