"""What a run asks of the C library about memory that is freed."""

import ctypes

import pytest

from rlcore.run import freed_memory

SET_BY_USER = freed_memory._SET_BY_USER


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
    monkeypatch.setattr(freed_memory.sys, "platform", "linux")
    for name in SET_BY_USER:
        monkeypatch.delenv(name, raising=False)
    return found


def test_freed_memory_is_kept(library):
    freed_memory.keep_freed_memory()
    assert library.settings == {-1: 2**28, -3: 2**25}


@pytest.mark.parametrize("name", SET_BY_USER)
def test_what_the_user_has_set_is_left(library, monkeypatch, name):
    monkeypatch.setenv(name, "1")
    freed_memory.keep_freed_memory()
    assert not library.settings


def test_another_system_is_left(library, monkeypatch):
    monkeypatch.setattr(freed_memory.sys, "platform", "darwin")
    freed_memory.keep_freed_memory()
    assert not library.settings


def test_another_c_library_is_no_error(library, monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    freed_memory.keep_freed_memory()
