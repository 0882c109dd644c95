"""Whose the components are that wrote the states of a checkpoint."""

import pytest

from rlcore.state.exactness import changed_owners


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        ("rlcore", "rlcore", False),
        ("rlcore", "rlcore-plugin-torchrl", False),
        ("rlcore-plugin-torchrl", "rlcore", True),
        ("rlcore", "rlcore-plugin-replay", True),
        ("rlcore-plugin-replay", "rlcore-plugin-torchrl", True),
        ("", "rlcore-plugin-torchrl", False),
        ("rlcore", "", False),
    ],
)
def test_what_left_the_core_for_a_plugin_is_the_same_and_anything_else_is_said(before, now, changed):
    lines = changed_owners({"hook.log": before}, {"hook.log": now, "hook.new": now})
    assert lines == ([f"hook.log was written by {before}, and is provided by {now} here"] if changed else [])
