"""`llms.txt`, the map of the site for assistants, and the skill beside it: a part of the site's build."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT: Final = Path(__file__).resolve().parents[2]
SKILL: Final = ROOT / "plugins/rlcore-plugin-assistants/src/rlcore_plugin_assistants/skill/SKILL.md"
_TOCTREE: Final = re.compile(r"^```\{toctree\}\n:caption: ([^\n]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ENTRY: Final = re.compile(r"^(?:.+ <)?((?:tutorial|algorithms|howto|explanation|reference)/[\w-]+)>?$", re.MULTILINE)
_MOST_LETTERS: Final = 200


def llms_txt() -> str:
    """Return the map: what the project is, then each page of the site with its title and its first sentence."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    site = f"{urls['Documentation']}/en/latest/"
    index = (ROOT / "docs/index.md").read_text()
    lead = " ".join(index.split(":::")[1].partition("\n")[2].split())
    parts = [f"# rlcore\n\n> {lead}\n\nThirty answers in one file: [skill.md]({site}skill.md)\n"]
    parts += [f"## {caption}\n\n{''.join(_lines(entries, site))}" for caption, entries in _TOCTREE.findall(index)]
    return "\n".join(part for part in parts if "](" in part)


def _lines(entries: str, site: str) -> Iterator[str]:
    for page in _ENTRY.findall(entries):
        file = ROOT / f"docs/{page}.md"
        if file.exists():  # some are written when the site is built, and not before
            title, _, text = file.read_text().partition("\n")
            yield f"- [{title.removeprefix('# ')}]({site}{page}.html): {_first_sentence(text)}\n"


def _first_sentence(text: str) -> str:
    """Return the first sentence of a page, without links and emphasis."""
    paragraph = next(part for part in text.split("\n\n") if re.match(r"[\w`\[*]", part.strip()))
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split())).replace("**", "")
    return re.split(r"(?<=[.])\s", plain, maxsplit=1)[0][:_MOST_LETTERS].rstrip(":")


def _write(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        (Path(app.outdir) / "llms.txt").write_text(llms_txt(), encoding="utf-8")
        (Path(app.outdir) / "skill.md").write_text(SKILL.read_text(encoding="utf-8"), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write both files when the site is built."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}
