"""Pictures of runs and agents, without a notebook."""

import sys
import types
from pathlib import Path

import numpy as np
from rlcore_plugin_notebook import html
from rlcore_plugin_notebook.pictures import agent_html, run_html

import rlcore

HOSTILE = "<script>alert(1)</script>"


def test_without_a_notebook_nothing_is_shown_and_ipython_is_not_imported(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "IPython", None)  # who imports it gets an error
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    run = rlcore.PPO("CartPole-v1", overrides={"epochs": 1, "episodes": 2, "hidden": [8]}).train(256)
    assert "<div" not in capsys.readouterr().out
    picture = run._repr_html_()
    assert "256 frames" in picture
    (run.folder / "config.toml").write_text(f'[env]\nuse = "{HOSTILE}"\n')
    assert HOSTILE not in run._repr_html_()
    run.folder.rename(tmp_path / "gone")
    assert "256 frames" in run._repr_html_()


def test_what_others_wrote_is_escaped(tmp_path):
    run = types.SimpleNamespace(
        folder=Path(HOSTILE), frames=1, updates=1, length=1, last_evaluation=None, best_evaluation=None, curves={}
    )
    run.stop_reason = HOSTILE
    assert HOSTILE not in run_html(run)
    agent = types.SimpleNamespace(
        env_id=HOSTILE, observation_space=HOSTILE, action_space=HOSTILE, transforms=[], network=None, frames=1
    )
    agent.remembers = False
    assert HOSTILE not in agent_html(agent)


def test_losses_stand_in_for_returns():
    curve = np.arange(3), np.array([3.0, 2.0, 1.0])
    assert 'alt="loss over updates"' in html.chart({"train/loss": curve, "train/lr": curve}, "updates")
    assert 'alt="return over frames"' in html.chart({"train/loss": curve, "episode/return": curve}, "frames")
    assert html.chart({"episode/return": (np.arange(1), np.array([np.nan]))}, "frames") == ""
