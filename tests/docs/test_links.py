"""Every link of the README and of docs/ leads somewhere, and every page can be reached."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)
READMES = sorted(ROOT.glob("plugins/*/README.md"))
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


PATH = re.compile(r"`((?:rlcore|tests|docs|plugins|examples|benchmarks)/(?:[\w.-]+/)*(?:[\w-]+\.\w+)?)`")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def links(page: Path) -> list[str]:
    return LINK.findall(FENCED.sub("", page.read_text()))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page, as GitHub makes them from its headings."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for link in links(page):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name_of(page)}: {link} does not exist"
        assert not anchor or anchor in anchors(target), f"{name_of(page)}: {link}: no such heading"


def test_every_page_can_be_reached_from_the_readme():
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        targets = [(page.parent / link.partition("#")[0]).resolve() for link in links(page) if ":" not in link]
        waiting += [target for target in targets if target.suffix == ".md" and target.exists()]
    assert not [name_of(page) for page in PAGES if page not in reached]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_has_one_title_and_begins_with_it(page):
    text = FENCED.sub("", page.read_text())
    assert text.startswith("# ")
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1


# of this repository; the tutorials name paths of a package that they write
ABOUT_HERE = [page for page in [*PAGES, *READMES] if page.name != "CHANGELOG.md" and page.parent.name != "tutorial"]


@pytest.mark.parametrize("page", ABOUT_HERE, ids=name_of)
def test_paths_of_the_repository_exist(page):
    named = PATH.findall(FENCED.sub("", page.read_text()))
    assert [path for path in named if "NAME" not in path and not (ROOT / path).exists()] == []
