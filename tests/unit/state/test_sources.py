"""Which files are hashed for a run, and what their hashes tell."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch

from rlcore.state.sources import PREFIX, module_of, modules_of, source_differences, source_hashes, without_sources


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Make a module of a file, and return the file."""

    def make(name, file, **names):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("A = 1\n")
        made = ModuleType(name)
        made.__file__ = str(path)
        vars(made).update(names)
        monkeypatch.setitem(sys.modules, name, made)
        return path

    return make


def test_all_files_of_a_package_count_imported_or_not(module):
    first = module("pack", "pack/__init__.py")
    module("pack.used", "pack/used.py")
    unused = module("elsewhere", "pack/deep/unused.py")
    data = first.parent / "table.csv"
    names = source_hashes({}, ["pack.used"])
    assert list(names) == [f"{PREFIX}pack"]
    data.write_text("1")
    unused.write_text("B = 2\n")
    assert source_hashes({}, ["pack.used"]) == names, "neither data, nor a folder that is no package"
    (unused.parent / "__init__.py").touch()
    assert source_hashes({}, ["pack.used"]) != names


def test_what_a_loose_module_uses_counts_and_so_on(module):
    last = module("last", "last.py")
    module("middle", "middle.py", last=sys.modules["last"], torch=torch)
    module("first", "first.py", function=type("Made", (), {"__module__": "middle"}))
    names = source_hashes({}, ["first"])
    assert set(names) == {f"{PREFIX}{name}.py" for name in ("first", "middle", "last")}
    last.write_text("A = 2\n")
    found = source_hashes({}, ["first"])
    assert source_differences(names, found) == ["the source of last.py is not what the checkpoint was made with"]


def test_files_of_installed_libraries_count_only_where_they_are_named(module):
    module("library", "site-packages/library/__init__.py")
    module("library.env", "site-packages/library/env.py")
    module("mine", "mine.py", library=sys.modules["library"])
    assert set(source_hashes({}, ["mine", "library.env"])) == {f"{PREFIX}mine.py", f"{PREFIX}library.env"}
    assert set(source_hashes({"library": "the-library"}, [])) == {f"{PREFIX}the-library"}


def test_the_standard_library_and_what_has_no_file_do_not_count():
    assert source_hashes({}, ["json", "sys", "no.such.module", ""]) == {}


def test_a_file_that_is_gone_differs_from_what_it_was(module):
    path = module("gone", "gone.py")
    before = source_hashes({}, ["gone"])
    path.unlink()
    assert source_differences(before, source_hashes({}, ["gone"])) != []


def test_only_what_both_sides_have_is_compared():
    assert source_differences({"source of a": "1", "threads": "1"}, {"source of b": "2", "threads": "2"}) == []
    assert without_sources({"source of a": "1", "threads": "1"}) == {"threads": "1"}


def test_names_come_from_places_and_parts():
    assert module_of("package.module:Name") == "package.module"
    assert module_of(torch.nn.Linear) == "torch.nn.modules.linear"
    assert list(modules_of(torch.nn.Linear(1, 1))) == ["torch.nn.modules.linear"], "its modules() are no names"
    named = type("Named", (), {"__module__": "here", "modules": lambda self: ["there"]})()
    assert list(modules_of(named)) == ["here", "there"]
