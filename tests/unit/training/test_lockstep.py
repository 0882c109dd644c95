"""Processes that train together do the same iterations and epochs, whatever happens in one of them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from rlcore import hookimpl
from rlcore.errors import EndOfData, EndOfEpoch
from rlcore.training.lockstep import Collected, Lockstep
from rlcore.training.loop import Loop
from rlcore.types.group import Alone

OTHER = Collected(steps=32, episodes=0, out_of_data=0, stop=0, stop_at=96, keep=0)


class Two:
    """A group of two, of which the other process says what a test has it say.

    Args:
        said: what the other says in each iteration, the last one for ever.
        ends: the minibatches, counted over the run, before which the other ends an epoch.
        rank: of this process.
    """

    size = 2

    def __init__(self, said=(OTHER,), ends=(), rank=0):
        self.rank = rank
        self.said, self.ends = list(said), set(ends)
        self.iterations = self.votes = 0

    def share(self, numbers):
        if len(numbers) == 2:  # whether to save, which the first says
            return (numbers, numbers)
        if len(numbers) == 1:
            other = (int(self.votes in self.ends),)
            self.votes += 1
        else:
            other = self.said[min(self.iterations, len(self.said) - 1)]
            self.iterations += 1
        return (numbers, other) if self.rank == 0 else (other, numbers)

    def gather(self, tree, tensors=None):
        return [(tree, tensors)] * 2


class Epochs:
    """Sees every minibatch, and counts those that are left to the learner."""

    def __init__(self, ends=()):
        self.seen, self.taken, self.ends = 0, [0], set(ends)

    @hookimpl
    def process_optim_batch(self, minibatch):
        self.seen += 1
        if self.seen - 1 in self.ends:
            raise EndOfEpoch

    @hookimpl
    def post_optim(self):
        self.taken[-1] += 1

    @hookimpl
    def post_epoch(self):
        self.taken.append(0)


@pytest.fixture
def together(build):
    """Build the tiny run, 32 frames in an iteration, as one of two processes."""

    def make(group, hooks=(), **options):
        return Loop(replace(build(hooks, **options).trainer.parts, group=group))

    return make


def test_frames_and_episodes_are_those_of_all(together):
    loop = together(Two([OTHER._replace(steps=64, episodes=1000)]))
    assert next(iter(loop)).frames == 32 + 64
    assert loop.progress.episodes >= 1000
    assert loop.done, "96 frames are all"


def test_what_a_hook_sees_of_an_iteration_is_agreed(together):
    frames = []

    class Looks:
        @hookimpl
        def pre_optim_steps(self, trainer):
            frames.append(trainer.progress.frames)

    together(Two([OTHER._replace(steps=16)]), [Looks()]).train()
    assert frames == [48, 96]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_stop_of_the_other_ends_the_iteration_in_which_it_is_heard(together, rank):
    loop = together(Two([OTHER._replace(steps=0), OTHER._replace(steps=0, stop=1)], rank=rank))
    assert loop.train().iterations == 2
    assert loop.stop_reason == "another process of the group was asked to stop"


def test_a_stop_of_this_process_waits_until_the_other_has_heard_of_it(together):
    class Stops:
        @hookimpl
        def post_steps(self, trainer):
            trainer.request_stop("seen enough")

    group = Two([OTHER._replace(steps=0)])
    loop = together(group, [Stops()])
    assert loop.train().iterations == 2, "asked for after the first, heard of in the second"
    assert loop.stop_reason == "seen enough"
    assert group.iterations == 2


def test_the_least_frame_at_which_one_stops_counts_for_all(together):
    assert together(Two([OTHER._replace(steps=0, stop_at=64)])).train().frames == 64
    loop = together(Two([OTHER._replace(steps=0, stop_at=10**9)]))
    loop.stop_at = 32
    assert loop.train().frames == 32


def test_where_the_other_has_no_more_data_the_batch_here_is_left(together):
    loop = together(Two([OTHER, OTHER._replace(steps=0, out_of_data=1)]))
    progress = loop.train()
    assert (progress.iterations, progress.frames) == (1, 64)
    assert loop.stop_reason == "the collector has no more batches"


def test_where_this_process_has_no_more_data_it_says_so(together):
    group = Two()
    loop = together(group)

    def nothing():
        raise EndOfData

    loop.collector.collect = nothing
    loop.train()
    assert (group.iterations, loop.progress.frames) == (1, 0), "the frames of the other are left too"


def test_an_epoch_that_the_other_ends_ends_here(together):
    epochs = Epochs()
    together(Two([OTHER._replace(steps=64)], ends=[1]), [epochs]).train()
    assert epochs.taken == [1, 2, 0], "the first of two epochs, after one of two minibatches"


def test_an_epoch_that_ends_here_is_told_to_the_other(together):
    epochs, group = Epochs(ends=[0]), Two([OTHER._replace(steps=64)])
    together(group, [epochs]).train()
    assert epochs.taken == [0, 2, 0]
    assert group.votes == 3


def test_without_a_hook_that_may_end_an_epoch_nothing_is_asked(together):
    group = Two()
    assert together(group).train().updates > 0
    assert group.votes == 0


@pytest.mark.parametrize("rank", [0, 1])
def test_the_first_rank_says_when_a_copy_of_the_state_is_kept(together, rank, monkeypatch):
    monkeypatch.setattr("rlcore.state.snapshot._COST_FACTOR", 0)  # here it would be kept at every boundary
    loop = together(Two([OTHER._replace(steps=0)], rank=rank), write=True)
    kept = []
    for _ in loop:
        kept.append(loop.saver.last_good.snapshot.frames)
    assert kept == ([0, 32, 64] if rank == 0 else [0, 0, 0])


def test_one_process_follows_itself():
    lockstep = Lockstep(Alone())
    own = Collected(steps=5, episodes=1, out_of_data=0, stop=1, stop_at=10, keep=1)
    assert lockstep.agree(own) is own, "without work, as an iteration may be a single step"
    assert not lockstep.ends(5, stop=False, stop_at=10), "not what was said before, but what it says now"
    assert lockstep.ends(5, stop=True, stop_at=10)
    assert lockstep.ends(10, stop=False, stop_at=10)
    assert [lockstep.keeps(due) for due in (True, False)] == [True, False]
    assert not lockstep.together


def test_one_process_asks_once_per_iteration_whether_to_keep_a_copy_of_the_state(together, monkeypatch):
    loop, asked = together(Alone(), write=True), []
    monkeypatch.setattr(loop.saving, "last_good_due", lambda frames: asked.append(frames) or False)
    for _ in loop:
        pass
    assert asked == list(range(0, loop.progress.frames, 32))


class Pair:
    """Two ranks in two threads, each of which waits for the other."""

    def __init__(self):
        self.barrier = threading.Barrier(2, timeout=30)
        self.said = [None, None]

    def member(self, rank):
        pair = self

        class Member:
            size = 2

            def __init__(self):
                self.rank = rank

            def share(self, numbers):
                pair.said[rank] = tuple(numbers)
                pair.barrier.wait()
                both = list(pair.said)
                pair.barrier.wait()
                return both

        return Member()


def test_two_loops_in_step_end_alike_whatever_happens_in_one(together):
    class Random:
        """Ends epochs and stops where the other does not."""

        def __init__(self, rank):
            self.rank, self.seen = rank, 0

        @hookimpl
        def process_optim_batch(self, minibatch):
            self.seen += 1
            if self.seen % 5 == 3 * self.rank:
                raise EndOfEpoch

        @hookimpl
        def post_steps(self, trainer):
            if trainer.progress.iterations == 4 + self.rank:
                trainer.request_stop(f"rank {self.rank}")

    pair = Pair()
    loops = [together(pair.member(rank), [Random(rank)], run={"seed": rank, "total_frames": 1000}) for rank in (0, 1)]
    with ThreadPoolExecutor(2) as threads:
        clocks = list(threads.map(lambda loop: loop.train().state_dict(), loops))
    assert clocks[0] == clocks[1]
    assert (clocks[0]["iterations"], clocks[0]["frames"]) == (5, 5 * 2 * 32), "heard of one iteration later"
    assert 0 < clocks[0]["updates"] < 5 * 4, "some epochs ended early"
    assert [loop.stop_reason for loop in loops] == ["rank 0", "another process of the group was asked to stop"]
