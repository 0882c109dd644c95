"""The state kept before an iteration, and the evaluations kept over a run."""

from __future__ import annotations

import torch

from rlcore import Progress
from rlcore.state import snapshot
from rlcore.state.snapshot import LastGoodState, Snapshot
from rlcore.state.tree import flatten, unflatten
from rlcore.training.evaluations import Evaluations
from rlcore.types import EvaluationResult


def moment(frames=0, size=1):
    return Snapshot.of({"model": {"x": torch.zeros(size)}}, Progress(1000, frames)).copied()


class Clock:
    """Time that goes on only when it is told to."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(snapshot.time, "monotonic", lambda: self.now)

    def keep(self, kept, frames, seconds):
        def take():
            self.now += seconds
            return moment(frames)

        kept.keep(take)


def test_keeping_takes_at_most_half_a_percent_of_the_time(monkeypatch):
    clock, kept = Clock(monkeypatch), LastGoodState()
    spent, began = 0.0, clock.now
    for frames in range(1, 5000):
        if kept.due(frames):
            clock.keep(kept, frames, 0.002)
            spent += 0.002
        clock.now += 0.01
    assert 0.004 < spent / (clock.now - began) <= 0.0051
    assert kept.snapshot.frames > 4900, "and the latest is recent"


def test_one_copy_that_was_held_up_does_not_put_off_the_next_for_long(monkeypatch):
    clock, kept = Clock(monkeypatch), LastGoodState()
    for frames, seconds in enumerate([5.0, 0.001, 3.0], start=1):
        assert kept.due(frames)
        clock.keep(kept, frames, seconds)
        clock.now += 0.21
    assert kept.due(9)


def test_the_first_boundary_is_kept_at_once_and_one_frame_only_once(monkeypatch):
    clock, kept = Clock(monkeypatch), LastGoodState()
    assert kept.due(0)
    clock.keep(kept, 0, 0.0)
    assert not kept.due(0)
    assert kept.due(16), "what costs nothing is kept every time"


def test_what_is_kept_is_a_copy():
    live = {"model": {"x": torch.zeros(3)}}
    kept = LastGoodState()
    kept.keep(lambda: Snapshot.of(live, Progress(1000, 10)))
    live["model"]["x"] += 1
    assert kept.snapshot.frames == 10
    assert not kept.snapshot.states()["model"]["x"].any()


def test_a_large_state_is_never_copied(monkeypatch):
    class OutOfMemory(Snapshot):
        def copied(self):
            raise MemoryError("a replay buffer larger than memory")

    monkeypatch.setattr(snapshot, "_LARGEST_BYTES", 100)
    kept = LastGoodState()
    kept.keep(lambda: moment(size=25))
    assert kept.snapshot is not None
    kept = LastGoodState()
    kept.keep(lambda: OutOfMemory.of({"buffer": {"rows": torch.zeros(26)}}, Progress(1000)))
    assert kept.snapshot is None
    assert not kept.due(10**9), "and never tried again"


# evaluations


def result(frames, value):
    return EvaluationResult(frames, (1, 2), (value, value + 2), (5, 6))


def test_the_newest_and_the_best_evaluation_are_kept():
    kept = Evaluations()
    assert (kept.last, kept.best) == (None, None)
    for frames, value in ((0, 1.0), (10, 5.0), (20, 5.0), (30, 2.0)):
        kept.take(result(frames, value), trained=True)
    assert kept.last == result(30, 2.0)
    assert kept.best == result(10, 5.0), "of two equally good ones the first"


def test_evaluations_outlive_a_checkpoint():
    first, second, empty = Evaluations(), Evaluations(), Evaluations()
    empty.load_state_dict(through_a_checkpoint(Evaluations().state_dict()))
    assert (empty.last, empty.best) == (None, None)
    first.take(result(10, 5.0), trained=True)
    first.take(result(20, 3.0), trained=True)
    second.load_state_dict(through_a_checkpoint(first.state_dict()))
    assert (second.last, second.best) == (first.last, first.best)
    second.take(result(30, 4.0), trained=True)
    assert second.best.frames == 10


def through_a_checkpoint(state):
    tensors = {}
    return unflatten(flatten(state, "", tensors), tensors)
