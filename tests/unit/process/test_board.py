"""The words by which processes see that others move, and how long something has stood still."""

from __future__ import annotations

import ctypes
import mmap
import multiprocessing
import os

import pytest

from rlcore.process import Board, Stillness, nameless_file


@pytest.fixture
def clock(monkeypatch):
    """Return a list of one number, the time."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_time_counts_from_the_last_change(clock):
    stillness, seconds = Stillness(0.2), []
    for mark in (1, 1, 2, 2):
        clock[0] += 0.1
        seconds.append(stillness.look(mark))
    assert seconds == pytest.approx([0.0, 0.1, 0.0, 0.1])


def test_time_in_which_the_observer_itself_stood_still_does_not_count(clock):
    stillness = Stillness(0.2)
    stillness.look(1)
    clock[0] += 60.0
    assert stillness.look(1) == pytest.approx(0.2)


def move(board, number):
    board.line(number)[3] += 5


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_another_process_writes_words_of_its_own_line(method):
    context = multiprocessing.get_context(method)
    board = Board(context.RawArray(ctypes.c_int64, 12), length=4)
    process = context.Process(target=move, args=(board, 1))
    process.start()
    process.join()
    assert [list(board.line(number)) for number in range(3)] == [[0] * 4, [0, 0, 0, 5], [0] * 4]


def test_memory_without_a_name_is_shared_by_its_descriptor():
    fd = nameless_file("rlcore-test")
    os.truncate(fd, 8 * 16)
    one, other = (Board(mmap.mmap(fd, 8 * 16)) for _ in range(2))
    os.close(fd)
    one.line(1)[0] = 7
    assert list(other.line(1)) == [7, *[0] * 7]
