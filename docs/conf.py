"""Settings of the documentation site: `make docs` builds it into `docs/_build/html`."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs/reference"))

project = "rlcore"
author = "the rlcore developers"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

extensions = [
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx.ext.autodoc",
    "api_docstrings",
    "llms",
    "math_renderer",
]
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

# the API: docstrings use single backticks for code, and annotations name what is imported for type checkers only
default_role = "literal"
add_module_names = False
python_maximum_signature_line_length = 90
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
nitpick_ignore_regex = [
    # packages that have sites of their own
    (
        "py:.*",
        r"(_pytest|collections|contextlib|gymnasium|numpy|np|os|pathlib|pluggy|pydantic|tensordict|torch|nn|torchrl)\..*",
    ),
    # what annotations name that is imported for type checkers only
    ("py:class", "Array|BaseModel|BoolArray|InteractionType|Path|PluginManager|ReplayBuffer|Tensor|TensorDict|_F"),
    (
        "py:class",
        "Assembly|Bins|IntervalUnit|Key|ModuleWithMemory|PolicyLike|QLearningLoss|QNetworkModel|ScriptTrainer|State",
    ),
    ("py:class", r"TargetUpdater|TrainerHooks|log_values\.Bins|(dict|Mapping)\[str"),
    # parts of the core behind the public objects
    ("py:class", r"rlcore\.(checkpoints|config|learners|plugins|run|scripts|state|training)\..*"),
    ("py:class", r"rlcore_plugin_torchrl\..*"),
    ("py:class", r"rlcore\.types\.(heart\.MovingSave|optional\.Interface|part\.Kind)"),
    ("py:meth", r"PluginManager\.register"),
]

html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"rlcore {version}"
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
