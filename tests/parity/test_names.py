"""Every name of TorchRL's trainer is there, or is said to be missing."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import rlcore
from rlcore.hooks.operations import DESTINATIONS

trainers = pytest.importorskip("torchrl.trainers.trainers")

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "trainer-api.md").read_text()
LISTED = {
    name for line in PAGE.splitlines() if line.startswith("|") for name in re.findall(r"`(\w+)`", line.split("|")[1])
}
NOT_THERE = {"MixedPrecisionOptimizationStepper"}
HOOKS = [
    name
    for name, kind in vars(trainers).items()
    if inspect.isclass(kind) and issubclass(kind, trainers.TrainerHookBase) and kind.__module__ == trainers.__name__
]


def arguments_of(trainer):
    return set(inspect.signature(trainer.__init__).parameters) - {"self"}


def test_the_page_lists_every_hook_and_each_is_there():
    assert len(HOOKS) > 15
    assert {*HOOKS, "mask_batch", "LogReward", "Recorder"} <= LISTED
    for name in {*HOOKS, "mask_batch"} - NOT_THERE:
        assert getattr(rlcore, name).__name__ == name
    assert not [name for name in NOT_THERE if hasattr(rlcore, name)]


def test_the_page_lists_every_argument_of_the_constructor_and_each_is_there():
    assert arguments_of(trainers.Trainer) | arguments_of(rlcore.Trainer) <= LISTED
    assert arguments_of(trainers.Trainer) - NOT_THERE <= arguments_of(rlcore.Trainer)


def test_the_page_lists_every_public_method_and_each_is_there():
    names = {name for name in vars(trainers.Trainer) if not name.startswith("_")}
    assert names <= LISTED
    assert not [name for name in names if not hasattr(rlcore.Trainer, name)]


def test_the_page_lists_every_destination():
    assert set(DESTINATIONS) <= LISTED


def test_the_page_says_what_is_not_there():
    absent = PAGE.partition("## What is not there")[2]
    for name in ("configs of Hydra", "`DreamerV3`", *NOT_THERE):
        assert name in absent
