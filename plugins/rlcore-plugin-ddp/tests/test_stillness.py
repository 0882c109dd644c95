"""How long something has stood still, as whoever waits for it measures it."""

from __future__ import annotations

import pytest
from rlcore_plugin_ddp.stillness import Stillness


@pytest.fixture
def clock(monkeypatch):
    """Return a list of one number, the time."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_time_counts_from_the_last_change(clock):
    stillness, seconds = Stillness(1, 0.1), []
    for mark in (1, 1, 2, 2):
        clock[0] += 0.1
        seconds.append(stillness.look(mark))
    assert seconds == pytest.approx([0.1, 0.2, 0.0, 0.1])


def test_time_in_which_the_observer_itself_stood_still_does_not_count(clock):
    stillness = Stillness(1, 0.1)
    clock[0] += 60.0
    assert stillness.look(1) == pytest.approx(0.2)
