"""What the ranks of a generation and their supervisor see of each other, and the states that outlive them."""

from __future__ import annotations

import os

import pytest
import torch
from rlcore_plugin_ddp.ranks.board import Kept, RankBoard
from rlcore_plugin_ddp.ranks.keeping import KeptStates, read_kept

from rlcore.state.snapshot import Snapshot
from rlcore.types.progress import Progress


@pytest.fixture
def board():
    board = RankBoard(2)
    yield board
    for fd in board.fds:
        os.close(fd)


def snapshot(frames, size=5):
    state = {
        "weights": torch.arange(size, dtype=torch.float32) + frames,
        "half": torch.full((2, 3), frames, dtype=torch.bfloat16),
        "count": torch.tensor(frames),
        "none": torch.zeros(0, 3),
        "turned": torch.arange(6).reshape(2, 3).T,
        "nan": float("nan"),
        "text": "state",
    }
    return Snapshot.of({"part": state}, Progress(1000, frames=frames), evaluation=1.5)


def test_a_rank_says_how_far_it_is_and_how_it_ends(board):
    other = RankBoard(2, board.fds)  # as another process sees it
    other.pulse(1, frames=64)
    other.begun(0)
    other.dies(1, "naïve " * 300, lost=0)
    other.ends(1, 0)
    assert (board.why(0), board.lost(0)) == ("", None)
    assert board.why(1).startswith("naïve naïve")
    assert board.lost(1) == 0
    assert board.pulses() == [0, 1]
    assert board.reached() == 64
    assert (board.has_begun(0), board.has_begun(1)) == (True, False)
    assert (board.outcome(0), board.outcome(1)) == (None, 0)
    board.begin_generation()
    assert (board.outcome(1), board.pulses(), board.reached()) == (None, [0, 0], 0)
    assert (board.why(1), board.lost(1)) == ("", None)


def test_what_a_rank_of_another_host_says_stands_here_but_for_the_states_that_it_keeps_there(board):
    there, mirror = RankBoard(2), RankBoard(2)
    board.wanted, board.stop = 64, 15
    there.copy(None, board.line(None))
    assert (there.wanted, there.stop) == (64, 15)
    there.pulse(1, frames=96)
    there.begun(1)
    there.keeps(1, 0, 64)
    there.sends(1, 64, texts=3)
    there.dies(1, "lost", lost=0)
    there.ends(1, 6)
    mirror.copy(1, there.line(1))
    assert (mirror.sent(1), mirror.texts(1), mirror.kept_by(1)) == (64, 3, {0: 64})
    board.keeps(1, 1, 32)
    board.hear(1, there.line(1))
    assert (board.reached(), board.has_begun(1), board.outcome(1), board.lost(1)) == (96, True, 6, 0)
    assert (board.why(1), board.kept_by(1), board.pulses()) == ("lost", {1: 32}, [0, 1])
    said = there.line(1)
    there.sends(1, None, texts=3)
    assert there.line(1) != said, "each message is another one, so that who stands still shows"


def test_a_state_counts_when_every_rank_has_it(board):
    board.keeps(0, 0, 64)
    assert board.kept() is None
    board.keeps(1, 0, 64)
    assert board.kept() == Kept(0, 64)
    board.keeps(0, 1, 128)  # the other rank is about to
    assert board.kept() == Kept(0, 64)
    board.keeps(1, 1, 128)
    assert board.kept() == Kept(1, 128)
    board.keeps(1, 1, None)  # it is being written over
    assert board.kept() == Kept(0, 64)


def test_a_generation_knows_only_the_state_that_it_begins_with(board):
    for rank, place, frames in ((0, 0, 64), (1, 0, 64), (0, 1, 128)):
        board.keeps(rank, place, frames)
    board.begin_generation(board.kept())
    board.keeps(1, 1, 128)  # rank 0 had that, before it died
    assert board.kept() == Kept(0, 64)


def test_the_state_of_frame_zero_can_be_kept(board):
    board.keeps(0, 0, 0)
    board.keeps(1, 0, 0)
    assert board.kept() == Kept(0, 0)


def test_a_kept_state_comes_back_as_it_was(board):
    states = KeptStates(board, rank=1, place=0)
    for frames, size in ((64, 5), (128, 5000), (192, 7)):  # places grow
        states.keep(lambda frames=frames, size=size: snapshot(frames, size))
        board.keeps(0, board_place(board, frames), frames)
        kept = board.kept()
        assert kept.frames == frames
        found, expected = read_kept(RankBoard(2, board.fds), 1, kept.place), snapshot(frames, size)
        assert found.digests() == expected.digests()
        assert (found.progress, found.evaluation) == (expected.progress, expected.evaluation)


def board_place(board, frames):
    """Return where rank 1 has the state of a frame."""
    return next(place for place, reached in board.kept_by(1).items() if reached == frames)


def test_a_state_that_is_too_large_is_not_kept(board, monkeypatch):
    monkeypatch.setattr("rlcore.state.snapshot._LARGEST_BYTES", 100)
    states = KeptStates(board, rank=0, place=0)
    states.keep(lambda: snapshot(64, 5000))
    assert not states.due(128)
    assert os.fstat(board.place(0, 0)).st_size == 0
