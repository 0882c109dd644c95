"""What a run asks of the C library about memory that is freed."""

import ctypes

import pytest

from rlcore.run import process_state

SET_BY_USER = process_state._SET_BY_USER


class Library:
    def __init__(self):
        self.settings = {}

    def mallopt(self, option, size):
        self.settings[option] = size
        return 1


@pytest.fixture
def library(monkeypatch):
    found = Library()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: found)
    monkeypatch.setattr(process_state.sys, "platform", "linux")
    for name in SET_BY_USER:
        monkeypatch.delenv(name, raising=False)
    return found


def test_freed_memory_is_kept(library):
    process_state.keep_freed_memory()
    assert library.settings == {-1: 2**28, -3: 2**25}


@pytest.mark.parametrize("name", SET_BY_USER)
def test_what_the_user_has_set_is_left(library, monkeypatch, name):
    monkeypatch.setenv(name, "1")
    process_state.keep_freed_memory()
    assert not library.settings


def test_another_system_is_left(library, monkeypatch):
    monkeypatch.setattr(process_state.sys, "platform", "darwin")
    process_state.keep_freed_memory()
    assert not library.settings


def test_another_c_library_is_no_error(library, monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    process_state.keep_freed_memory()
