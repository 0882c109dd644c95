"""The page with a PPO update as straight code computes what the parts compute, to the bit."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from rlcore.cli import command_line as cli

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/docs"))

from test_snippets import snippets  # noqa: E402 - a script beside this one

PAGE = ROOT / "docs/explanation/ppo-update.md"


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The names that the snippets of the page define, without what they run."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init", "--example", "ppo-cartpole"]) == 0
    names: dict[str, object] = {}
    for snippet in snippets(PAGE):
        if snippet.language == "python":
            exec(snippet.text.split("\n\n\nstraight, by_parts =")[0], names)
    return names


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_straight_code_and_parts_have_the_same_bits(page, seed):
    straight, by_parts = page["both"](seed, 6)
    assert set(straight) == set(by_parts)
    assert [name for name, weights in by_parts.items() if not torch.equal(straight[name], weights)] == []


def test_another_update_has_other_bits(page):
    page["GAMMA"] = 0.98
    straight, by_parts = page["both"](1, 1)
    assert any(not torch.equal(straight[name], by_parts[name]) for name in by_parts)
