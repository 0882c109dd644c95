"""Which checkpoints a script keeps, how it loads them, and who is told of it."""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from tensordict import TensorDict, lazy_stack

from rlcore import CheckpointRotation, ConfigError
from rlcore.checkpoints.manifest import MANIFEST
from rlcore.config.file import read
from tests.trainer.scripts import Batches, Regression, make, make_batch, weights


def frames(paths):
    return [int(path.name[:12]) for path in paths]


def rated(tmp_path, keep_best, values=(3.0, 1.0, 4.0, 2.0), **arguments):
    """Train 64 frames with a metric of these values, one per batch and checkpoint."""
    rotation = CheckpointRotation(tmp_path / "run", keep_last=1, keep_best=keep_best)
    trainer = make(checkpoint_rotation=rotation, save_trainer_interval=16, log_interval=16, **arguments)
    given = iter(values)
    trainer.register_op("post_steps_log", lambda batch: {"score": next(given)})
    trainer.train()
    return rotation


@pytest.mark.parametrize(("mode", "best"), [("max", 48), ("min", 32)])
def test_the_checkpoint_with_the_best_metric_is_kept(tmp_path, mode, best):
    rotation = rated(tmp_path, ("score", mode))
    assert frames(rotation.checkpoints()) == [best, 64]
    assert frames([rotation.best(), rotation.latest()]) == [best, 64]
    manifest = json.loads((rotation.best() / MANIFEST).read_text())
    assert manifest["metadata"] == {"score": 4.0 if mode == "max" else 1.0}


def test_what_a_script_says_of_a_checkpoint_goes_before_a_metric(tmp_path):
    metadata = {"checkpoint_metadata": lambda trainer: {"score": -trainer.collected_frames, "who": "me"}}
    rotation = rated(tmp_path, ("score", "max"), **metadata)
    assert frames(rotation.checkpoints()) == [0, 64]
    assert json.loads((rotation.latest() / MANIFEST).read_text())["metadata"] == {"score": -64, "who": "me"}


def test_the_count_of_frames_may_say_which_is_best(tmp_path):
    assert frames(rated(tmp_path, ("collected_frames", "min")).checkpoints()) == [0, 64]


@pytest.mark.parametrize("keep_best", [None, False])
def test_without_a_best_only_the_newest_are_kept(tmp_path, keep_best):
    rotation = rated(tmp_path, keep_best)
    assert frames(rotation.checkpoints()) == [64]
    assert rotation.best() is None


def test_a_metric_that_never_comes_is_said(tmp_path, caplog):
    rotation = rated(tmp_path, ("scroe", "max"))
    assert "there is no metric 'scroe' at frame 32; did you mean 'score'?" in caplog.text
    assert frames(rotation.checkpoints()) == [64]
    assert rotation.best() is None


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"keep_best": ("score", "most")}, ValueError),
        ({"keep_best": ("", "max")}, ValueError),
        ({"keep_best": "score"}, TypeError),
        ({"keep_best": ("score",)}, TypeError),
        ({"keep_last": 0}, ValueError),
        ({"keep_last": 1.5}, TypeError),
        ({"prefix": "mine"}, ValueError),
    ],
)
def test_a_rotation_that_cannot_be(arguments, kind):
    with pytest.raises(ConfigError) as caught:
        CheckpointRotation("run", **arguments)
    assert isinstance(caught.value, kind)


def test_a_rotation_of_torchrl_keeps_what_it_says(tmp_path):
    theirs = pytest.importorskip("torchrl.checkpoint").CheckpointRotation
    rotation = theirs(tmp_path / "run", keep_last=1, keep_best=("collected_frames", "min"))
    make(checkpoint_rotation=rotation, save_trainer_interval=16).train()
    ours = CheckpointRotation(tmp_path / "run", keep_best=("collected_frames", "min"))
    assert frames(ours.checkpoints()) == [0, 64]
    with pytest.raises(ConfigError, match="names of checkpoints begin with the frame"):
        make(checkpoint_rotation=theirs(tmp_path / "run", keep_last=1, prefix="mine"))


def test_what_is_no_rotation_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="a PosixPath; expected an rlcore"):
        make(checkpoint_rotation=tmp_path)


class Table:
    """A module that keeps the very tensors that it is given."""

    def __init__(self):
        self.state = {"rows": torch.arange(6.0), "nested": [(torch.ones(2),)]}

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state


@pytest.mark.parametrize(
    ("where", "device"),
    [
        ("meta", "meta"),
        (torch.device("meta"), "meta"),
        ({"cpu": "meta"}, "meta"),
        ({"cuda:0": "cpu"}, "cpu"),
        (lambda storage, place: torch.empty(0, device="meta").untyped_storage(), "meta"),
        (lambda storage, place: None, "cpu"),
        (None, "cpu"),
    ],
    ids=["name", "device", "mapping", "mapping of another", "function", "function of nothing", "none"],
)
def test_tensors_come_where_the_script_wants_them(tmp_path, where, device):
    trainer = make(save_trainer_file=tmp_path)
    trainer.register_module("table", Table())
    trainer.save_trainer(True)
    again = make(optimizer=None)
    again.register_module("table", table := Table())
    again.load_from_file(
        tmp_path, map_location=where, weights_only=False, mmap=False, drop=["optimizer"], fresh=["loss_module"]
    )
    assert table.state["rows"].device.type == table.state["nested"][0][0].device.type == device
    if device == "cpu":
        assert torch.equal(table.state["rows"], torch.arange(6.0))


@pytest.mark.parametrize("options", [{"map_location": "cpu"}, {"mmap": False}, {"map_location": "meta"}], ids=str)
def test_a_tensordict_comes_as_one_where_the_script_wants_it(tmp_path, options):
    held = TensorDict({"row": torch.arange(3.0), "text": "left"}, batch_size=[3], device="cpu", names=["time"])
    trainer = make(save_trainer_file=tmp_path)
    trainer.register_module("table", table := Table())
    annotated = OrderedDict(rows=torch.ones(2))
    annotated._metadata = {"batch_size": [2]}
    table.state = {"batch": held, "stack": lazy_stack([held, held.clone()]), "annotated": annotated}
    trainer.save_trainer(True)
    again = make(optimizer=None)
    again.register_module("table", found := Table())
    again.load_from_file(tmp_path, drop=["optimizer"], fresh=["loss_module"], **options)
    device = options.get("map_location", "cpu")
    batch, stack = found.state["batch"], found.state["stack"]
    assert (batch.batch_size, batch.names, batch["text"], stack.batch_size) == ((3,), ["time"], "left", (2, 3))
    assert {batch.device.type, batch["row"].device.type, stack[0]["row"].device.type} == {device}
    assert found.state["annotated"]._metadata == {"batch_size": [2]}


def mapped(path):
    return str(path) in Path("/proc/self/maps").read_text()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux shows what is mapped")
@pytest.mark.parametrize("mmap", [True, False])
def test_files_stay_mapped_only_if_they_may(tmp_path, mmap):
    trainer = make(save_trainer_file=tmp_path)
    trainer.register_module("table", Table())
    folder = trainer.save_trainer(True)
    again = make(optimizer=None)
    again.register_module("table", Table())
    again.load_from_file(tmp_path, mmap=mmap, weights_only=True, drop=["optimizer"])  # which may keep its tensors
    assert mapped(folder) is mmap


def test_another_option_is_refused(tmp_path):
    make(save_trainer_file=tmp_path).save_trainer(True)
    with pytest.raises(TypeError, match="no option 'pickle_module'; they are weights_only, map_location, mmap"):
        make().load_from_file(tmp_path, pickle_module=None)
    with pytest.raises(TypeError, match="map_location: a int"):
        make().load_from_file(tmp_path, map_location=3)


def test_memmap_names_the_back_end_that_maps_files(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPT_BACKEND", "memmap")
    folder = make(save_trainer_file=tmp_path).save_trainer(True)
    assert json.loads((folder / MANIFEST).read_text())["backend"] == "torch"
    assert make(checkpoint="memmap").load_from_file(tmp_path).collected_frames == 0
    config = tmp_path / "config.toml"
    config.write_text("")
    assert read(config).values["checkpoint"]["use"] == "torch"


class Copies(Batches):
    """Acts with a copy of the weights, as collectors of other libraries do."""

    def __init__(self, policy):
        super().__init__()
        self.policy = policy
        self.weights = None

    def update_policy_weights_(self):
        self.weights = self.policy.weight.clone()


@pytest.mark.parametrize("how", ["file", "state", "module registered later"])
def test_a_collector_acts_with_the_restored_weights(tmp_path, how):
    loss = Regression(seed=1)
    trainer = make(Copies(loss.actor), loss, save_trainer_file=tmp_path)
    late = torch.nn.Linear(2, 2)
    trainer.register_module("late", late)
    trainer.optim_steps(make_batch(1))
    trainer.save_trainer(True)
    other = Regression(seed=2)
    policy = torch.nn.Linear(2, 2) if how.startswith("module") else other.actor
    again = make(Copies(policy), other)
    if not how.startswith("module"):
        again.register_module("late", torch.nn.Linear(2, 2))
    if how == "state":
        again.load_state_dict(trainer.state_dict())
    else:
        again.load_from_file(tmp_path)
    if how.startswith("module"):
        again.register_module("late", policy)
        assert torch.equal(again.collector.weights, late.weight)
    else:
        assert torch.equal(again.collector.weights, weights(trainer)["actor.weight"])
