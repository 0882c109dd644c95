"""A worker is forked while another thread of the process seeds torch."""

from __future__ import annotations

import multiprocessing
import os
import threading

import pytest
import torch
from rlcore_plugin_parallel.forks import wait_for_torch

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
