"""Run folders as `rlcore train` leaves them, as far as reports read them; and the command line in this process."""

from __future__ import annotations

import json

import pytest
import tomli_w

from tests.conftest import _plain_environment, cli, workdir, write_config

__all__ = ["_plain_environment", "cli", "make_run", "workdir", "write_config"]


@pytest.fixture
def make_run(tmp_path):
    """Make a run folder with evaluations: frames to the returns of its episodes."""

    def make(name, evaluations, *, seed=1, env="CartPole-v1", state="done", **sections):
        folder = tmp_path / name
        folder.mkdir()
        config = {
            "run": {"name": name, "seed": seed, "folder": "runs", "total_frames": 100},
            "env": {"use": "gymnasium:gymnasium", "id": env},
            "loss": {"use": "ppo:ppo", "clip_epsilon": 0.2},
            "optimizer": [{"use": "core:adam", "name": "adam", "lr": 0.001}],
            **sections,
        }
        (folder / "config.toml").write_text(tomli_w.dumps(config))
        rows = [f"{frames},{n},{value},1" for frames, values in evaluations.items() for n, value in enumerate(values)]
        (folder / "evaluations.csv").write_text("\n".join(["frames,seed,return,length", *rows]) + "\n")
        (folder / "status.json").write_text(json.dumps({"state": state, "frames": max(evaluations, default=0)}))
        return folder

    return make
