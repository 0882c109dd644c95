from __future__ import annotations

import pytest

from rlcore import ConfigError, Every, Progress


def test_every_is_due_once_when_a_multiple_was_passed():
    every, progress, due = Every(100), Progress(1000), []
    for progress.frames in range(0, 400, 30):
        if every.due(progress):
            due.append(progress.frames)
        assert not every.due(progress), "only once"
    assert due == [120, 210, 300]


def test_every_is_due_once_even_when_several_multiples_were_passed():
    every, progress = Every(10), Progress(1000, frames=95)
    assert every.due(progress)
    assert not every.due(progress)
    progress.frames = 99
    assert not every.due(progress)
    progress.frames = 100
    assert every.due(progress)


@pytest.mark.parametrize("clock", ["frames", "updates", "iterations"])
def test_every_follows_the_clock_it_names(clock):
    every = Every({clock: 5})
    assert not every.due(Progress(1000, **{name: 100 for name in ("frames", "updates", "iterations") if name != clock}))
    assert every.due(Progress(1000, **{clock: 5}))
    assert str(every) == f"every 5 {clock}"


def test_after_catching_up_every_is_due_where_it_would_have_been():
    whole, resumed, progress = Every(100), Every(100), Progress(1000)
    for progress.frames in (0, 50, 100, 150):
        whole.due(progress)
    resumed.catch_up(progress)
    for progress.frames in range(150, 600, 50):
        assert whole.due(progress) == resumed.due(progress)


def test_next_says_when_the_interval_is_due_again():
    every = Every(100)
    assert [every.next(Progress(1000, frames=frames)) for frames in (0, 99, 100, 250)] == [100, 100, 200, 300]


@pytest.mark.parametrize(
    ("interval", "message"),
    [
        (0, "must be positive; found 0"),
        (-5, "must be positive; found -5"),
        ({"updates": 0}, "must be positive"),
        ({"update": 5}, "unknown clock 'update'; did you mean 'updates'"),
        ({}, "names one clock of frames, updates, iterations"),
        ({"updates": 5, "frames": 5}, "names one clock"),
    ],
)
def test_an_impossible_interval_is_refused(interval, message):
    with pytest.raises(ConfigError, match=message):
        Every(interval)


def test_the_fraction_stays_between_zero_and_one():
    assert [Progress(200, frames=frames).fraction for frames in (0, 50, 200, 250)] == [0, 0.25, 1, 1]


def test_progress_is_restored_without_its_horizon():
    progress = Progress(1000, frames=10, updates=20, iterations=3, episodes=4)
    restored = Progress(5000)
    restored.load_state_dict(progress.state_dict())
    assert restored == Progress(5000, frames=10, updates=20, iterations=3, episodes=4)
