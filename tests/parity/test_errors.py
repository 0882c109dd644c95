"""Where TorchRL's trainer raises an error on purpose, ours raises one of the same built-in kind."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

import rlcore
import rlcore.helpers
import rlcore.loggers
from rlcore.errors import RlcoreError
from tests.parity.conftest import Collector, make_batch, trainer_of

trainers = pytest.importorskip("torchrl.trainers.trainers")
losses = pytest.importorskip("torchrl.trainers.helpers.losses")
builders = pytest.importorskip("torchrl.trainers.helpers.envs")
loggers = pytest.importorskip("torchrl.record.loggers")

HOOKS = {"torchrl": trainers, "rlcore": rlcore}
UPDATERS = {"torchrl": losses.make_target_updater, "rlcore": rlcore.helpers.make_target_updater}
ENVS = {"torchrl": builders.parallel_env_constructor, "rlcore": rlcore.helpers.parallel_env_constructor}
LOGGERS = {"torchrl": loggers.get_logger, "rlcore": rlcore.loggers.get_logger}
SINGLE = SimpleNamespace(loss="single", hard_update=True, value_network_update_interval=10)


def trainer(library, **arguments):
    return trainer_of(library, [make_batch(2, 4)], **arguments)


def sgd():
    return torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)


def registered_twice(library):
    found = trainer(library)
    for _ in range(2):
        found.register_module("module", torch.nn.Linear(1, 1))


def rotation_and_file(library):
    checkpoint = __import__("torchrl.checkpoint").checkpoint
    if library == "torchrl":
        rotation = checkpoint.CheckpointRotation("folder", keep_last=1)
        return trainer(library, checkpoint=checkpoint.Checkpoint(), checkpoint_rotation=rotation, save_trainer_file="a")
    return trainer(library, checkpoint_rotation=rlcore.CheckpointRotation("folder"), save_trainer_file="a")


ON_PURPOSE = {
    "no such destination": lambda of: trainer(of).register_op("nosuch", print),
    "registered twice": registered_twice,
    "no such learner": lambda of: trainer(of, learner_backend="nosuch"),
    "learner_poll_interval": lambda of: trainer(of, learner_poll_interval=0),
    "rotation and file": rotation_and_file,
    "no such file": lambda of: trainer(of).load_from_file("nosuch/nosuch"),
    "no state": lambda of: trainer(of).load_state_dict({}),
    "no such method of the loss": lambda of: trainer(of).compute_loss(make_batch(2, 4), method="nosuch"),
    "no such argument": lambda of: trainer(of, nosuch=1),
    "SelectKeys of a string": lambda of: HOOKS[of].SelectKeys("a"),
    "SelectKeys of what is not there": lambda of: HOOKS[of].SelectKeys(["nosuch"])(make_batch(2, 4)),
    "OptimizerHook of nothing": lambda of: HOOKS[of].OptimizerHook(sgd(), []),
    "stepper of nothing": lambda of: HOOKS[of].DefaultOptimizationStepper([]),
    "stepper without an optimizer": lambda of: (
        HOOKS[of].DefaultOptimizationStepper().step(trainer(of), make_batch(2, 4))
    ),
    "no such reduction": lambda of: HOOKS[of].LogScalar(reduction="nosuch"),
    "windows too long": lambda of: HOOKS[of].BatchSubSampler(4, sub_traj_len=8)(make_batch(2, 4)),
    "batch too small": lambda of: HOOKS[of].BatchSubSampler(1, sub_traj_len=2)(make_batch(2, 4)),
    "two envs": lambda of: HOOKS[of].LogValidationReward(
        record_interval=1, record_frames=1, policy_exploration=None, environment=1, recorder=2
    ),
    "no interval": lambda of: HOOKS[of].UpdateWeights(Collector([]), 0),
    "no such unit": lambda of: HOOKS[of].UpdateWeights(Collector([]), 1, interval_unit="nosuch"),
    "no collector": lambda of: HOOKS[of].UpdateWeights(None, 1),
    "no trainer": lambda of: HOOKS[of].UpdateWeights(Collector([]), 1, weight_update_map={"a": "b"})(),
    "no updater": lambda of: HOOKS[of].TargetNetUpdaterHook(3),
    "no such interval": lambda of: HOOKS[of].LRSchedulerHook(
        torch.optim.lr_scheduler.StepLR(sgd(), 1), interval="nosuch"
    ),
    "no such mode": lambda of: HOOKS[of].EarlyStopping(monitor="a", mode="nosuch"),
    "no patience": lambda of: HOOKS[of].EarlyStopping(monitor="a", patience=-1),
    "no waiting": lambda of: HOOKS[of].EarlyStopping(monitor="a", wait_for=-1),
    "not attached": lambda of: HOOKS[of].EarlyStopping(monitor="a")(),
    "no such logger": lambda of: LOGGERS[of]("nosuch", "a", "b"),
    "no target": lambda of: UPDATERS[of](SINGLE, torch.nn.Linear(1, 1)),
    "batch_transform": lambda of: ENVS[of](SimpleNamespace(batch_transform=False, env_per_collector=2)),
}


@pytest.mark.parametrize("case", ON_PURPOSE)
def test_it_is_of_the_kind_that_theirs_is(case):
    raised = {}
    for library in ("torchrl", "rlcore"):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - which kind is the question
            ON_PURPOSE[case](library)
        raised[library] = caught.value
    assert isinstance(raised["rlcore"], type(raised["torchrl"])), repr(raised["torchrl"])
    if case not in ("no such method of the loss", "no such argument"):  # those are Python's own
        assert isinstance(raised["rlcore"], RlcoreError)
        assert not str(raised["rlcore"]).startswith(("'", '"'))
