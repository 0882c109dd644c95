"""The names of RLlib's classes that the plugin of learners goes by are those of RLlib."""

from __future__ import annotations

import inspect
import runpy
from pathlib import Path

import pytest
from rlcore_plugin_learners.originals import TABLE

import rlcore
from rlcore.errors import NotSupportedError

for name in ("ray", "tree", "lz4"):
    pytest.importorskip(name, reason="pip install ray[rllib]")

WRITER = Path(__file__).parents[2] / "plugins" / "rlcore-plugin-learners" / "tests" / "rllib_names.py"


def test_the_names_are_those_of_this_version():
    assert runpy.run_path(str(WRITER))["table"]() == TABLE, f"run {WRITER} with this version of ray"


@pytest.mark.parametrize("name", sorted(TABLE["algorithms"]))
def test_every_keyword_of_an_algorithm_is_here_with_its_default_or_refused_by_name(name):
    theirs = runpy.run_path(str(WRITER))["algorithms"]()[name]()
    kind = getattr(rlcore, name)
    ours = kind()
    for keyword in [*TABLE["algorithms"][name]["training"], *inspect.signature(theirs.training).parameters]:
        if keyword == "kwargs" or keyword[0] == "_" or not hasattr(theirs, keyword):
            continue
        value = getattr(theirs, keyword)
        if keyword == "epsilon" and isinstance(value, list):
            value = [list(point) for point in value]
        if value in (-1, "DEPRECATED_VALUE") or keyword in ("minibatch_size", "num_epochs", "shuffle_batch_per_epoch"):
            continue  # the last three are said in the page on RLlib
        assert getattr(ours, keyword) == value, keyword
        assert getattr(kind().training(**{keyword: value}), keyword) == value, keyword
        if keyword in kind.without_effect:
            with pytest.raises(NotSupportedError, match=rf"{name}\.{keyword} is 'other': "):
                kind().training(**{keyword: "other"})
