from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from rlcore.cli.train import EXIT_CODES
from rlcore.errors import (
    EnvError,
    HookError,
    Interruption,
    RlcoreError,
    describe,
    did_you_mean,
    exit_code_of,
    named,
    nearest,
    note,
    notes_of,
)

ROOT = Path(__file__).parents[2]
KNOWN = ["clip_epsilon", "entropy_coef", "critic_coef", "normalize_advantage", "lr"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("clip_epsilom", "clip_epsilon"),
        ("clpi", "clip_epsilon"),
        ("epsilon", "clip_epsilon"),
        ("entropy_coeff", "entropy_coef"),
        ("entropy-coef", "entropy_coef"),
        ("CLIP_EPSILON", "clip_epsilon"),
        ("normalise_advantage", "normalize_advantage"),
        ("qqqqqq", None),
        ("", None),
    ],
)
def test_nearest_finds_what_was_meant(name, expected):
    assert nearest(name, KNOWN) == expected


def test_letters_that_changed_places_are_the_likeliest_slip():
    assert nearest("adma", ["adam", "adamax", "adamw"]) == "adam"


def test_nearest_knows_nothing_among_nothing():
    assert nearest("anything", []) is None


def test_nearest_does_not_depend_on_the_order_of_the_known_names():
    assert nearest("abcd", ["abcx", "abcy"]) == nearest("abcd", ["abcy", "abcx"])


def test_did_you_mean_is_empty_when_nothing_is_alike():
    assert did_you_mean("clpi", KNOWN) == "; did you mean 'clip_epsilon'?"
    assert did_you_mean("qqqqqq", KNOWN) == ""


def exit_codes_in_sources() -> Iterator[tuple[str, int | None]]:
    """Yield each class that derives from `RlcoreError` itself, of the core and the plugins, and its own exit code."""
    for path in chain(ROOT.glob("rlcore/**/*.py"), ROOT.glob("plugins/*/src/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and "RlcoreError" in map(ast.unparse, node.bases):
                codes = {ast.unparse(line.targets[0]): line.value for line in node.body if isinstance(line, ast.Assign)}
                yield node.name, ast.literal_eval(codes["exit_code"]) if "exit_code" in codes else None


def test_every_error_has_an_exit_code_that_the_command_line_documents():
    codes = dict(exit_codes_in_sources())
    assert codes.keys() >= {kind.__name__ for kind in RlcoreError.__subclasses__() if kind.__module__ != __name__}
    for name, code in codes.items():
        assert code in EXIT_CODES, f"{name} has no exit code of its own that is documented"
        assert code not in (0, 1), f"{name} would be taken for success or for a bug"


class MuteError(Exception):
    def __str__(self):
        sys.exit(0)


class NestedError(Exception):
    def __str__(self):
        raise NestedError


class Stopped(Interruption):
    pass


class WhileStoppedError(Exception):
    def __str__(self):
        raise Stopped


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no licence"), "ValueError: no licence"),
        (ValueError(), "ValueError"),
        (KeyError("a"), "KeyError: 'a'"),
        (SystemExit(0), "SystemExit: 0"),
        (MuteError(), "MuteError: its message cannot be read, SystemExit"),
        (NestedError(), "NestedError: its message cannot be read, NestedError"),
    ],
)
def test_an_error_is_described_whatever_its_methods_do(error, said):
    assert describe(error) == said


def test_what_comes_from_outside_is_not_swallowed_while_an_error_is_described():
    with pytest.raises(Stopped):
        describe(WhileStoppedError())


class ForbidsNotesError(Exception):
    add_note = None
    __setattr__ = None


@pytest.mark.parametrize(("kind", "code"), [(RlcoreError, 1), (HookError, 7), (EnvError, 3)])
@pytest.mark.parametrize("error", [ValueError("x"), ForbidsNotesError("x")], ids=["usual", "forbids notes"])
def test_whose_an_error_is_decides_its_exit_code_and_no_text_does(error, kind, code):
    error = type(error)("x")
    with pytest.raises(type(error)), named("hook 'a'", kind):
        raise error
    assert exit_code_of(error) == code
    spoken = ValueError("raised by hook 'a'")
    spoken.add_note("raised by hook 'a'")
    assert exit_code_of(spoken) == 1


def test_the_notes_of_an_error_are_those_that_were_added():
    error = ValueError("wrong")
    assert notes_of(error) == []
    note(error, "first")
    note(error, "second")
    assert notes_of(error) == ["first", "second"] == error.__notes__


def test_an_error_that_forbids_notes_is_left_as_it_is():
    class ClosedError(Exception):
        def add_note(self, text):
            raise AttributeError("no notes")

    error = ClosedError()
    note(error, "first")
    assert notes_of(error) == []
