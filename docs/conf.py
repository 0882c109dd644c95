"""Settings of the documentation site: `make docs` builds it into `docs/_build/html`."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

project = "rlcore"
author = "the rlcore developers"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

extensions = ["myst_parser", "sphinx_design", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "reference/generate.py"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath"]
# what a reader pastes is the command, without the prompt and without what it printed
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"
# the words after the language of a fence are for the test that runs the snippets
suppress_warnings = ["misc.highlighting_failure"]
nitpicky = True

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"rlcore {version}"
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
