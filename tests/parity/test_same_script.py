"""The scripts that the pages "Come from ..." begin with run on the peer too, once their imports are the peer's."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

PAGES = Path(__file__).resolve().parents[2] / "docs/howto"
FENCE = re.compile(r"^```python(?P<flags>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
# an import of ours, and in its comment what a script of theirs has in its place
IMPORT = re.compile(r"^from [^\n]* import (\(?[^#\n]*)  # (from [^\n]*)$", re.MULTILINE)


def script(page, folder):
    """Return the first script of a page; files before it are written."""
    for fence in FENCE.finditer((PAGES / page).read_text()):
        if "file=" not in fence["flags"]:
            return fence["text"]
        (folder / fence["flags"].partition("file=")[2]).write_text(fence["text"])
    raise AssertionError(f"{page} has no script")


def theirs(text):
    """Return a script with the peer's imports."""
    changed, count = IMPORT.subn(r"\2", text)
    assert count
    return changed


def run(text):
    names = {"__name__": "__main__"}
    exec(text, names)
    return names


@pytest.fixture
def folder(tmp_path, monkeypatch):
    modules = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.filterwarnings("ignore")
def test_the_same_script_learns_the_same_with_either_trainer(folder):
    pytest.importorskip("torchrl")
    text = script("from-torchrl.md", folder)
    peer, ours = run(theirs(text)), run(text)
    assert ours["trainer"].collected_frames == peer["trainer"].collected_frames == 256
    weights = ours["loss"].state_dict()
    for name, value in peer["loss"].state_dict().items():
        torch.testing.assert_close(weights[name], value, rtol=1e-4, atol=1e-6)
    assert ours["optimizer"].param_groups[0]["lr"] == peer["optimizer"].param_groups[0]["lr"]
    names = {name for name, _, _ in ours["rows"]}
    assert {name for name, _, _ in peer["rows"]} - names == set()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_runner_of_rsl_rl_takes_the_same_script(folder):
    pytest.importorskip("rsl_rl")
    text = script("from-rsl-rl.md", folder).replace("learn(20,", "learn(2,")
    peer, ours = run(theirs(text)), run(text)
    assert ours["actions"].shape == peer["actions"].shape == (256, 2)
    assert ours["runner"].current_learning_iteration == peer["runner"].current_learning_iteration


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_same_learner_of_rllib_learns_the_same(folder):
    for name in ("ray", "tree", "lz4"):
        pytest.importorskip(name, reason="pip install ray[rllib]")
    text = script("from-rllib.md", folder)
    peer, ours = run(theirs(text)), run(text)
    assert peer["PPOConfig"].__module__.startswith("ray.")
    assert not ours["PPOConfig"].__module__.startswith("ray.")
    assert set(ours["weights"]) == set(peer["weights"])
    for name, weight in peer["weights"].items():
        np.testing.assert_allclose(ours["weights"][name], weight, rtol=0, atol=1e-6)
    assert max(ours["loss"], peer["loss"]) < 0.2
