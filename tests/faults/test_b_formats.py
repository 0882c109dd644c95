"""Checkpoints of older formats: those in `tests/checkpoints/` load, each through every step from its format on."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from rlcore_plugin_testing import difference
from rlcore_plugin_torch.checkpointer import TorchCheckpointer

from rlcore.checkpoints import manifest, migrations
from rlcore.checkpoints import store as checkpoint
from rlcore.checkpoints.manifest import FORMAT, scan
from rlcore.checkpoints.migrations import MIGRATIONS, Migration, migrated_manifest, migrated_state
from rlcore.checkpoints.store import Store
from rlcore.errors import StorageError

GOLDEN = Path(__file__).parents[1] / "checkpoints"
# what each of them holds
STATE = {
    "model": {"weight": torch.arange(6.0).reshape(2, 3), "half": torch.tensor([0.5], dtype=torch.bfloat16)},
    "optimizer.adam": {"step": torch.tensor(3), "betas": (0.9, 0.999), "ids": {0: "weight", 1: None}},
    "collector": {"array": np.arange(3, dtype=np.int16), "limit": float("inf"), "empty": torch.empty(0, 2)},
    "metrics": {"rows": [1, 2.5, "ü", True]},
}


def store(folder):
    return Store(folder, TorchCheckpointer(TorchCheckpointer.Config(), None), "torch")


def test_b12_there_is_a_step_from_every_older_format_and_a_checkpoint_of_every_format():
    assert sorted(MIGRATIONS) == list(range(1, FORMAT))
    assert sorted(path.name for path in GOLDEN.iterdir()) == [f"format-{number}" for number in range(1, FORMAT + 1)]


@pytest.mark.parametrize("version", range(1, FORMAT + 1))
def test_b12_a_checkpoint_of_every_format_loads(version):
    entry, found = store(GOLDEN / f"format-{version}").load_newest()
    assert difference(found, STATE) is None
    assert entry.manifest["format"] == version
    assert (entry.frames, entry.evaluation) == (48, 1.5)
    assert entry.manifest["inexact"] == ["an env cannot go on"]


@pytest.mark.parametrize("version", range(1, FORMAT + 1))
def test_b12_the_hashes_of_every_format_are_still_those(version):
    """Of what is in the checkpoint; a change of how they are made would be a change of the format."""
    opened = store(GOLDEN / f"format-{version}")
    (entry,) = opened.entries()
    assert opened.snapshot(entry).digests() == entry.manifest["digests"]


@pytest.fixture
def later(monkeypatch):
    """An rlcore two formats later: the first of them calls the collector's array `steps`, the second knows a seed."""

    def renamed(state):
        state["collector"]["steps"] = state["collector"].pop("array")
        return state

    monkeypatch.setitem(MIGRATIONS, FORMAT, Migration(state=renamed))
    monkeypatch.setitem(MIGRATIONS, FORMAT + 1, Migration(manifest=lambda manifest: {**manifest, "seed": 0}))
    monkeypatch.setitem(manifest._ENTRIES, "seed", lambda value: type(value) is int)
    for module in (manifest, checkpoint):
        monkeypatch.setattr(module, "FORMAT", FORMAT + 2)


def test_b12_an_older_checkpoint_goes_through_every_step_and_stays_as_it_is_on_disk(later):
    before = {path: path.read_bytes() for path in GOLDEN.rglob("*") if path.is_file()}
    entry, found = store(GOLDEN / "format-1").load_newest()
    assert entry.manifest["seed"] == 0
    assert entry.manifest["format"] == 1, "the format that wrote it"
    wanted = {**STATE["collector"], "steps": STATE["collector"]["array"]}
    wanted.pop("array")
    assert difference(found["collector"], wanted) is None
    assert before == {path: path.read_bytes() for path in GOLDEN.rglob("*") if path.is_file()}


def test_b12_steps_are_taken_in_order_and_only_those_that_are_needed(monkeypatch):
    for number in (1, 2, 3):
        step = lambda value, number=number: {**value, "steps": [*value.get("steps", []), number]}  # noqa: E731
        monkeypatch.setitem(migrations.MIGRATIONS, number, Migration(manifest=step, state=step))
    assert migrated_manifest({"format": 1}, 4) == {"format": 1, "steps": [1, 2, 3]}
    assert migrated_manifest({"format": 3}, 4) == {"format": 3, "steps": [3]}
    assert migrated_manifest({"format": 4}, 4) == {"format": 4}
    assert migrated_state({}, 2, 4) == {"steps": [2, 3]}


def test_b12_the_first_format_knows_nothing_of_run_and_config():
    entry, _ = store(GOLDEN / "format-1").load_newest()
    assert [entry.manifest[key] for key in ("run_id", "config", "config_hash", "observers")] == ["", {}, "", []]


def test_b12_a_step_that_fails_is_an_error_of_that_checkpoint(monkeypatch, tmp_path, caplog):
    monkeypatch.setitem(MIGRATIONS, 1, Migration(manifest=lambda manifest: {**manifest, "x": manifest["missing"]}))
    monkeypatch.setattr(manifest, "FORMAT", 2)
    shutil.copytree(GOLDEN / "format-1", tmp_path / "checkpoints")
    with caplog.at_level(logging.WARNING), pytest.raises(StorageError, match="is no checkpoint of format 1: KeyError"):
        store(tmp_path / "checkpoints").load_newest()
    assert len(scan(tmp_path / "checkpoints").problems) == 1
