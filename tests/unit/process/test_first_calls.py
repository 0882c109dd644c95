"""What torch's mathematics sets up at its first calls is set up before threads compute."""

import threading

import pytest
import torch
from rlcore_plugin_testing.ranks import in_ranks
from torch import nn

from rlcore.config.core import RunConfig
from rlcore.learners.gradient_step import GradientStep
from rlcore.process import first_calls
from rlcore.run.process_state import prepare_process


@pytest.fixture
def calls(monkeypatch):
    """The threads that made the first calls, in a process that has made none."""
    made = []
    monkeypatch.setattr(first_calls, "_FUNCTIONS", (lambda number: made.append(threading.current_thread()),))
    first_calls.make_first_calls.cache_clear()
    yield made
    first_calls.make_first_calls.cache_clear()


def test_ranks_in_threads_find_them_made(calls):
    assert in_ranks(2, lambda group: list(calls)) == [[threading.current_thread()]] * 2


def test_a_run_and_the_step_of_a_script_make_them_once(calls, monkeypatch):
    monkeypatch.setattr(torch, "set_num_threads", lambda count: calls.append(count))
    monkeypatch.setattr("rlcore.run.process_state.seed_all", lambda seed: None)
    prepare_process(RunConfig(name="run", total_frames=1, threads=3))
    assert calls == [threading.current_thread(), 3]
    GradientStep(torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1), None, torch.device("cpu"))
    assert len(calls) == 2


def test_a_step_of_a_script_makes_them_where_nobody_did(calls):
    GradientStep(torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1), None, torch.device("cpu"))
    assert calls == [threading.current_thread()]


def test_each_is_called_with_a_number_that_it_takes(monkeypatch):
    results = []
    kept = first_calls._FUNCTIONS
    watched = [lambda number, function=function: results.append(function(number)) for function in kept]
    monkeypatch.setattr(first_calls, "_FUNCTIONS", tuple(watched))
    first_calls.make_first_calls.__wrapped__()
    assert len(results) == len(kept)
    assert all(torch.isfinite(result).all() for result in results)
