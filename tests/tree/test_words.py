"""Words that are wrong wherever they stand, in prose, messages and names of tests; and files that docstrings name."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# each with what to say instead
WRONG = {
    r"\bmidst\b": "in the middle of",
    r"\banew\b": "start over, again",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"perceptron(?!s? \(MLPs?\))": "MLP, which is spelled out where it is defined",
    r"\bpython's lock\b": "the GIL",
    r"\bbelongs? into\b": "belong in",
}
# what was written before and stays; and the method of loggers, which others have written
LEFT_OUT = ("CHANGELOG.md", "benchmarks/results/", "tests/checkpoints/", "tests/tree/test_words.py")
NAMES = ("begin_anew",)


def texts():
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("not a git checkout")
    for name in listing.stdout.split("\0"):
        path = ROOT / name
        if path.suffix in (".py", ".md", ".toml", ".in", ".yml") and path.is_file() and not name.startswith(LEFT_OUT):
            yield name, path.read_text()


def wrong_words(text):
    """Yield each line with a wrong word, and what to say instead."""
    for name in NAMES:
        text = text.replace(name, "")
    for number, line in enumerate(text.replace("_", " ").splitlines(), 1):
        for word, instead in WRONG.items():
            if match := re.search(word, line, re.IGNORECASE):
                yield f"{number}: {match.group()!r}: say {instead}"


def test_no_text_has_a_word_that_is_always_wrong():
    assert [f"{name}:{problem}" for name, text in texts() for problem in wrong_words(text)] == []


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("in the midst of it", True),
        ("def test_a_run_begins_anew():", True),
        ("It was mended.", True),
        ("a multilayer perceptron", True),
        ("a multilayer perceptron (MLP)", False),
        ("logger.begin_anew()", False),
        ("an amended recommendation", False),
    ],
)
def test_wrong_words_are_found(line, wrong):
    assert bool(list(wrong_words(line))) is wrong


FILE = re.compile(r"`((?:\w+/)*\w+\.py)`")


def docstrings(tree):
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return "\n".join(ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds))


def test_files_that_a_docstring_names_exist():
    missing = []
    for path in sorted((ROOT / "rlcore").rglob("*.py")):
        places = (path.parent, ROOT / "rlcore", ROOT)
        named = FILE.findall(docstrings(ast.parse(path.read_text())))
        lost = [name for name in named if not any((place / name).exists() for place in places)]
        missing += [f"{path.relative_to(ROOT)}: {name}" for name in lost]
    assert missing == []
