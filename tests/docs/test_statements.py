"""What the pages say is not here is in no catalogue.

A comment `<!-- absent: NAME ... -->` beside a sentence names what it denies: a component, `KIND.KEY` of one,
a preset, a command, an option, a hook point or a class. A part of a name, such as `recurrent`, denies all names that
have it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from rlcore_plugin_presets.presets import presets

import rlcore
from rlcore.cli.command_line import parser
from rlcore.config.core import CORE_SECTIONS
from rlcore.hooks.specs import POINTS

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs/reference"))

import generate  # noqa: E402 - the generator of the reference is no package
import made_pages  # noqa: E402

PAGES = [page for page in generate.written_pages() if page.name != "CONTRIBUTING.md"]
PAGES += sorted(ROOT.glob("plugins/*/README.md"))
CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
ABSENT = re.compile(r"<!-- absent: ([^>]*) -->")
# what denies that rlcore has something; what is no such statement says it in other words
DENIES = re.compile(
    r"^## What is not (?:here|there)\n\n|no such point|(?:is|are) no components?\b|\bno keys? (?:here|in)\b|"
    r"rlcore has (?:no|none)\b|(?:is|are) not (?:supported|implemented)|there is no (?:policy that|lock file)|"
    r"(?:does|do) not exist here",
    re.MULTILINE,
)


def words(name):
    """Return the words of a name, each after a `-`: those of `DreamerV3` and `kl_coeff` too."""
    found = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    return "".join(f"-{word.lower()}" for word in found) + "-"


def commands(one, before=""):
    """Return the names and options of a parser and of those below it."""
    found = set()
    one.complete()
    for action in one._actions:
        found |= set(action.option_strings)
        for name, below in (action.choices or {}).items() if hasattr(action.choices, "items") else ():
            found |= {f"{before}{name}"} | commands(below, f"{before}{name} ")
    return found


@pytest.fixture(scope="module")
def catalogue():
    """The words of every name that a user can write."""
    names = {*POINTS, *rlcore.__all__, *commands(parser(["--help"]))}
    for section, schema in CORE_SECTIONS.items():
        names |= {f"{section}.{key}" for key in schema.model_fields}
    for preset in presets():
        names |= {preset.name, preset.about.algorithm}
    for name, project in made_pages.distributions().items():
        names |= {name, *project.get("optional-dependencies", {})}
        for entry in made_pages.provided_by(project):
            kind = entry.component.kind
            names |= {entry.component.name, *(f"{kind}.{key}" for key in entry.schema().model_fields)}
    for file in (file for folder in ROOT.glob("plugins/*/src/*") for file in folder.rglob("*.py")):
        names |= set(CLASS.findall(file.read_text()))
    return {words(name) for name in names}


def section(page, start):
    """Return the text between the headings around a place."""
    return page[page.rfind("\n## ", 0, start) + 1 :].removeprefix("## ").split("\n## ", 1)[0]


def statement(page, start):
    """Return what a denial belongs to: the row, the paragraph with its list, or the section under a heading."""
    if page[start:].startswith("## "):
        return section(page, start + len("## "))
    row = page[page.rfind("\n", 0, start) + 1 :].split("\n", 1)[0]
    return row if row.startswith("|") else page[page.rfind("\n\n", 0, start) + 2 :].split("\n\n", 1)[0]


def pages():
    """Return every page that is written by hand, by its path, without its fences and generated parts."""
    cut = re.compile(r"^```.*?^```$|<!-- generated: .*?<!-- end -->", re.MULTILINE | re.DOTALL)
    return {str(path.relative_to(ROOT)): cut.sub("", path.read_text()) for path in PAGES}


def test_what_a_page_denies_is_in_no_catalogue(catalogue):
    wrong = []
    for path, page in pages().items():
        for mark in ABSENT.finditer(page):
            around = words(ABSENT.sub("", section(page, mark.start())))
            for name in mark[1].split():
                there = [known for known in catalogue if words(name) in known]
                if there:
                    wrong.append(f"{path}: {name} is denied and is here: {there}")
                if words(name.rpartition(".")[2]) not in around:
                    wrong.append(f"{path}: the section of the mark says nothing of {name}")
    assert not wrong, "\n".join(wrong)


def test_every_denial_has_a_mark_by_which_it_is_held():
    without = [
        f"{path}: {match[0].strip()}"
        for path, page in pages().items()
        for match in DENIES.finditer(page)
        if not ABSENT.search(statement(page, match.start()))
    ]
    assert not without, f"name what is denied in `<!-- absent: NAME -->` beside it: {without}"


@pytest.mark.parametrize("name", ["sac", "recurrent", "buffer.n_steps", "seeds", "train-ranks"])
def test_a_denial_of_what_is_here_is_found(catalogue, name):
    assert any(words(name) in known for known in catalogue) is (name != "train-ranks")
