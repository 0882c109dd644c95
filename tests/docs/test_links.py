"""Every link of the README and of docs/ leads somewhere, and every page can be reached."""

from __future__ import annotations

import functools
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs/reference"))

import generate  # noqa: E402 - the generator of the reference is no package

PAGES = [ROOT / "CHANGELOG.md", *generate.written_pages()]
MADE = generate.made_pages()
READMES = sorted(ROOT.glob("plugins/*/README.md"))
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
INCLUDE = re.compile(r"^```\{include\} (\S+)$", re.MULTILINE)
# what a package index shows, apart from the repository
PACKAGE_PAGES = [ROOT / "README.md", *READMES]
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
SITE = f"{URLS['Documentation']}/en/latest/"
FILES = tuple(f"{URLS['Repository']}/{view}/main/" for view in ("blob", "raw"))


PATH = re.compile(r"`((?:rlcore|tests|docs|plugins|examples|benchmarks)/(?:[\w.-]+/)*(?:[\w-]+\.\w+)?)`")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@functools.cache
def text_of(page: Path) -> str:
    """Return what a page says, also one that is written when the site is built."""
    return MADE[page] if page in MADE else page.read_text()


def links(page: Path) -> list[str]:
    return LINK.findall(FENCED.sub("", text_of(page)))


def target_of(page: Path, link: str) -> tuple[Path, str]:
    """Return the file of the repository that a link leads to, and the anchor in it."""
    path, _, anchor = link.partition("#")
    if path.startswith(SITE):
        return ROOT / "docs" / path.removeprefix(SITE).replace(".html", ".md"), anchor
    for files in FILES:
        if path.startswith(files):
            return ROOT / path.removeprefix(files), anchor
    return (page.parent / path).resolve() if path else page, anchor


def is_elsewhere(link: str) -> bool:
    return link.startswith("https://") and not link.startswith((SITE, *FILES))


def included(page: Path) -> list[Path]:
    """Return the files that a page of the site shows as its own."""
    return [(page.parent / name).resolve() for name in INCLUDE.findall(text_of(page))]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page, as GitHub makes them from its headings."""
    text = "\n".join(FENCED.sub("", text_of(file)) for file in (page, *included(page)))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", [*PAGES, *MADE, *READMES], ids=name_of)
def test_links_lead_somewhere(page):
    for link in links(page):
        if is_elsewhere(link):
            continue
        target, anchor = target_of(page, link)
        assert target in MADE or target.exists(), f"{name_of(page)}: {link} does not exist"
        assert not anchor or anchor in anchors(target), f"{name_of(page)}: {link}: no such heading"


@pytest.mark.parametrize("page", PACKAGE_PAGES, ids=name_of)
def test_a_page_of_a_package_index_has_whole_links(page):
    """A package index shows the file alone, without the repository around it."""
    relative = [link for link in links(page) if not link.startswith(("https://", "#"))]
    assert not relative, f"{name_of(page)}: {relative}: on a package index these lead nowhere; begin with {SITE}"


@pytest.mark.parametrize("readme", READMES, ids=lambda page: page.parent.name)
def test_the_readme_of_a_plugin_is_on_the_site(readme):
    page = ROOT / f"docs/plugins/{readme.parent.name}.md"
    assert text_of(page).startswith(f"# {readme.parent.name}\n")
    assert readme.read_text().startswith(f"# {readme.parent.name}\n"), "the site leaves out the first line"
    assert included(page) == [readme]


def test_every_page_can_be_reached_from_the_readme():
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        targets = [target_of(page, link)[0] for link in links(page) if not is_elsewhere(link)]
        targets += included(page)
        waiting += [target for target in targets if target.suffix == ".md" and (target in MADE or target.exists())]
    assert not [name_of(page) for page in [*PAGES, *MADE, *READMES] if page not in reached]


@pytest.mark.parametrize("page", [*PAGES, *MADE], ids=name_of)
def test_a_page_has_one_title_and_begins_with_it(page):
    text = FENCED.sub("", text_of(page))
    assert text.startswith("# ")
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1


# of this repository; the tutorials name paths of a package that they write
ABOUT_HERE = [page for page in [*PAGES, *READMES] if page.name != "CHANGELOG.md" and page.parent.name != "tutorial"]


@pytest.mark.parametrize("page", ABOUT_HERE, ids=name_of)
def test_paths_of_the_repository_exist(page):
    named = PATH.findall(FENCED.sub("", page.read_text()))
    assert [path for path in named if "NAME" not in path and not (ROOT / path).exists()] == []


READ_IN_TURN = [
    page
    for folder in ("tutorial", "howto", "algorithms", "explanation")
    for page in sorted((ROOT / "docs" / folder).glob("*.md"))
]


@pytest.mark.parametrize("page", READ_IN_TURN, ids=name_of)
def test_a_page_ends_in_what_to_do_next(page):
    *_, end = page.read_text().rstrip().split("\n\n")
    *_, section = re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE) or [""]
    assert end.startswith("**Next:** [") or re.search(r"\bnext\b|\bgo from here\b", section, re.IGNORECASE)
