"""A run folder that an earlier rlcore left behind, killed after frame 128, goes on."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import gymnasium
import numpy as np

import rlcore

SAMPLE = Path(__file__).parent / "old_run"


def rows(text):
    return list(csv.DictReader(text.splitlines()))


def test_a_run_folder_of_an_earlier_version_is_resumed_to_its_end(cli, workdir):
    shutil.copytree(SAMPLE, workdir, dirs_exist_ok=True)
    before = (SAMPLE / "old" / "metrics.csv").read_text()
    outcome = cli("train", "config.toml", "--resume")
    assert outcome.code == 0, outcome.err

    after = Path("old/metrics.csv").read_text()
    assert after.startswith(before), "what was logged before stays to the byte"
    assert {int(row["frames"]) for row in rows(after)} == set(range(0, 257, 32))
    status = json.loads(Path("old/status.json").read_text())
    assert (status["state"], status["frames"]) == ("done", 256)
    assert Path("old/run_id").read_text() == (SAMPLE / "old" / "run_id").read_text()
    for name in ("evaluations.csv", "timings.csv"):
        assert Path("old", name).read_text().startswith((SAMPLE / "old" / name).read_text())
    assert cli("ckpt", "verify", "old").code == 0


def test_every_part_of_an_earlier_run_takes_its_state_back(cli, workdir):
    """The next checkpoint has the parts of the old one, and those that training moves have moved."""
    shutil.copytree(SAMPLE, workdir, dirs_exist_ok=True)
    (old,) = (json.loads(path.read_text()) for path in Path("old/checkpoints").glob("*/manifest.json"))
    assert cli("train", "config.toml", "--resume", "--set", "checkpoint.keep_last=10").code == 0
    manifests = [json.loads(path.read_text()) for path in sorted(Path("old/checkpoints").glob("*/manifest.json"))]
    assert [manifest["progress"]["frames"] for manifest in manifests] == [128, 160, 192, 224, 256]
    for manifest in manifests[1:]:
        assert set(manifest["digests"]) == set(old["digests"])
        assert manifest["run_id"] == old["run_id"]
    moved = {name for name, digest in old["digests"].items() if manifests[1]["digests"][name] != digest}
    assert {"model", "optimizer.adam", "collector", "progress", "buffer"} <= moved


def test_an_older_checkpoint_without_spaces_makes_the_env_for_them():
    agent = rlcore.load_agent(SAMPLE / "old")
    assert agent.observation_space == gymnasium.make("CartPole-v1").observation_space
    assert agent.act(np.zeros(4)) in (0, 1)
