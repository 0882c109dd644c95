"""The names of RLlib's classes that the plugin of learners goes by are those of RLlib."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from rlcore_plugin_learners.originals import TABLE

for name in ("ray", "tree", "lz4"):
    pytest.importorskip(name, reason="pip install ray[rllib]")

WRITER = Path(__file__).parents[2] / "plugins" / "rlcore-plugin-learners" / "tests" / "rllib_names.py"


def test_the_names_are_those_of_this_version():
    assert runpy.run_path(str(WRITER))["table"]() == TABLE, f"run {WRITER} with this version of ray"
