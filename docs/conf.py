"""Settings of the documentation site: `make docs` builds it into `docs/_build/html`."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

project = "rlcore"
author = "the rlcore developers"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "reference/generate.py"]
myst_heading_anchors = 4
# the words after the language of a fence are for the test that runs the snippets
suppress_warnings = ["misc.highlighting_failure"]
nitpicky = True

html_theme = "furo"
html_title = f"rlcore {version}"
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
