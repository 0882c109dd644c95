"""The named trainers learn, to the bit, what those of TorchRL learn, and resume as if nothing had been."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

pytest.importorskip("torchrl")
sys.path.insert(0, str(Path(__file__).parent))

import torchrl.trainers.algorithms as theirs
from rlcore_plugin_testing import difference
from torchrl_parts import BATCH, SCRIPTS, make

import rlcore.algorithms as ours
from rlcore.errors import ConfigError

THEIRS = SimpleNamespace(
    **{name: getattr(theirs, name) for name in SCRIPTS},
    TD3OptimizationStepper=sys.modules["torchrl.trainers.algorithms.td3"].TD3OptimizationStepper,
)
pytestmark = pytest.mark.filterwarnings("ignore")


def weights(trainer):
    return {name: value.detach().clone() for name, value in trainer.loss_module.state_dict().items()}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_named_trainer_learns_what_that_of_torchrl_learns(name):
    found = []
    for package in (THEIRS, ours):
        np.random.seed(0)
        trainer = make(package, name, seed=3)
        before = weights(trainer)
        trainer.train()
        found.append(weights(trainer))
        assert difference(found[-1], before) is not None
    assert difference(*found) is None


def test_clipped_steps_are_those_of_torchrl_but_for_rounding():
    """The norm of all gradients is summed in another order."""
    found = [make(package, "PPOTrainer", clip_norm=0.1) for package in (THEIRS, ours)]
    for trainer in found:
        torch.manual_seed(4)
        trainer.train()
    for left, right in zip(*(weights(trainer).values() for trainer in found), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_named_trainer_goes_on_after_a_resume_as_if_nothing_had_been(name, tmp_path):
    whole = make(ours, name, total=6 * BATCH)
    whole.train()
    first = make(ours, name, total=6 * BATCH, save_trainer_file=tmp_path)
    for progress in first:
        if progress.frames == 3 * BATCH:
            first.save_trainer(force_save=True)
            break
    second = make(ours, name, total=6 * BATCH, seed=8, save_trainer_file=tmp_path).load_from_file(tmp_path)
    assert second.collected_frames == 3 * BATCH
    second.train()
    assert difference(weights(second), weights(whole)) is None


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_argument_of_torchrl_is_one_here(name):
    known = inspect.signature(getattr(ours, name)).parameters
    wanted = inspect.signature(getattr(theirs, name).__init__).parameters
    assert set(wanted) - {"self"} <= set(known)
    fallen = {"frame_skip", "optim_steps_per_batch", "total_frames", "loss_module", "num_epochs", "target_net_updater"}
    fallen |= {"replay_buffer"} if name == "OfflineToOnlineTrainer" else set()
    for argument in set(wanted) - {"self"} - fallen:
        assert known[argument].default == wanted[argument].default, argument
    assert set(SCRIPTS) <= set(dir(ours))


def test_what_is_logged_has_the_names_of_torchrl():
    rows = []
    logger = SimpleNamespace(log_scalar=lambda name, value, step=None: rows.append(name))
    make(ours, "SACTrainer", logger=logger, log_observations=True).train()
    wanted = {"done_percentage", "r_training", "r_training_std", "r_max", "r_total", "action_norm", "obs_norm"}
    assert wanted | {"utd_ratio", "optim_steps", "loss_actor"} <= set(rows)


def test_what_an_algorithm_needs_is_asked_for_by_name():
    with pytest.raises(ConfigError, match="SACTrainer requires a target_net_updater"):
        make(ours, "SACTrainer", target_net_updater=None)
    with pytest.raises(TypeError, match="gready"):
        make(ours, "DQNTrainer", gready=1)
    with pytest.raises(ConfigError, match="gae must not be handed over"):
        make(ours, "PPOTrainer", gae=lambda batch: batch, add_gae=False)
    with pytest.raises(ConfigError, match="requires aggregated_reward_key and"):
        make(ours, "DQNTrainer", mixing_strategy="vdn")
    with pytest.raises(TypeError, match="it requires an OfflineToOnlineReplayBuffer"):
        make(ours, "OfflineToOnlineTrainer", replay_buffer=[])
    with pytest.raises(ConfigError, match="which a list as the collector does not know"):
        make(ours, "SACTrainer", collector=[], loss_module=SimpleNamespace(_action_spec=None))
    with pytest.raises(ConfigError, match="cannot run in the background"):
        make(ours, "OfflineToOnlineTrainer", async_collection=True)


def test_options_are_attributes():
    trainer = make(ours, "DQNTrainer")
    assert trainer.greedy_module is not None
    assert (trainer.reward_key, trainer.log_rewards) == ("reward", True)
    assert not hasattr(trainer, "log_actions")
