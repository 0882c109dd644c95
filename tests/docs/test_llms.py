"""`llms.txt` names every page of the site, once, with a sentence."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs/reference"))

import generate  # noqa: E402 - the generator of the reference is no package
import llms  # noqa: E402


def test_names_every_page_of_the_site_with_a_sentence():
    lines = re.findall(r"^- \[(.+)\]\(https://\S+/en/latest/(\S+)\.html\): (.+)$", llms.llms_txt(), re.MULTILINE)
    pages = [f"docs/{page}.md" for _, page, _ in lines if not generate.is_made(ROOT / f"docs/{page}.md")]
    written = [str(page.relative_to(ROOT)) for page in generate.written_pages() if ROOT / "docs" in page.parents]
    # the map itself, two files of the repository, and what `reference/api` leads to
    outside = {"docs/index.md", "docs/changelog.md", "docs/contributing.md"}
    assert sorted(pages) == sorted(page for page in {*written} - outside if "reference/api/" not in page)
    assert all(len(sentence) > 8 for _, _, sentence in lines)
