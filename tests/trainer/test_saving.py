"""Saving and loading a script's trainer: n frames, saved, loaded elsewhere, n more frames equal 2n frames."""

from __future__ import annotations

import importlib
import json
import sys
from types import ModuleType

import pytest
import torch
from rlcore_plugin_testing import make_run
from torch import nn

from rlcore import CheckpointRotation, ConfigError, HookError, StorageError, Trainer, TrainerHookBase
from rlcore.checkpoints.manifest import MANIFEST
from tests.trainer.scripts import Batches, Regression, make, make_batch, weights


class Counter(TrainerHookBase):
    destinations = {"post_steps": "__call__"}
    default_name = "counter"

    def __init__(self):
        self.count = 0

    def __call__(self):
        self.count += 1

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state_dict):
        self.count = state_dict["count"]


def entries(folder):
    return sorted(path.name[:12] for path in folder.iterdir() if (path / MANIFEST).exists())


@pytest.fixture
def script(tmp_path, monkeypatch):
    """The file of the program that runs, and a helper beside it."""
    for name, file in (("__main__", "train.py"), ("rewards", "rewards.py")):
        module = ModuleType(name)
        module.__file__ = str(tmp_path / file)
        (tmp_path / file).write_text("SCALE = 1.0\n")
        monkeypatch.setitem(sys.modules, name, module)
    sys.modules["__main__"].rewards = sys.modules["rewards"]
    return tmp_path


@pytest.mark.parametrize("edited", ["train.py", "rewards.py", None])
def test_a_script_that_was_edited_since_is_named(script, edited, caplog):
    make(save_trainer_file=script / "run", total_frames=32).train()
    if edited is not None:
        (script / edited).write_text("SCALE = 0.5\n")
    trainer = make(save_trainer_file=script / "run", total_frames=64).load_from_file(script / "run")
    reasons = [] if edited is None else [f"the source of {edited} is not what the checkpoint was made with"]
    assert [reason for reason in trainer.parts.provenance.inexact if "source" in reason] == reasons
    assert all(f"exact = false: {reason}" in caplog.text for reason in reasons)


def test_the_module_of_a_trainer_class_counts_wherever_it_is_installed(tmp_path, monkeypatch):
    """Named trainers are those of a distribution that a script loads as no plugin."""
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "named_trainers.py").write_text("from rlcore import Trainer\n\nclass Named(Trainer): ...\n")
    monkeypatch.syspath_prepend(str(installed))
    loss = Regression()
    optimizer = torch.optim.Adam(loss.parameters())
    kind = importlib.import_module("named_trainers").Named
    trainer = kind(collector=Batches(), total_frames=16, loss_module=loss, optimizer=optimizer)
    assert "source of named_trainers" in trainer.parts.provenance.domain
    sys.modules.pop("named_trainers")


def test_what_made_a_checkpoint_inexact_is_passed_on(tmp_path):
    first = make(save_trainer_file=tmp_path / "run", total_frames=32)
    first.parts.provenance = first.parts.provenance.with_reasons(["of old"])
    first.train()
    second = make(save_trainer_file=tmp_path / "run", total_frames=64).load_from_file(tmp_path / "run")
    second.train()
    newest = sorted((tmp_path / "run").glob("0*"))[-1]
    assert "of old" in json.loads((newest / MANIFEST).read_text())["inexact"]


def test_n_saved_and_n_more_equal_2n(tmp_path):
    def build(**arguments):
        trainer = make(save_trainer_file=tmp_path / "run", total_frames=64, **arguments)
        Counter().register(trainer)
        return trainer

    whole = make(total_frames=64)
    whole.train()

    first = build()
    first.stop_at = 32
    first.train()
    second = build()
    assert second.load_from_file(tmp_path / "run") is second
    assert (second.collected_frames, second.progress.updates) == (32, 4)
    assert second.app_state["counter"].count == 2
    second.train()
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(second)[name]), name
    assert second.app_state["counter"].count == 4
    assert second.state_dict()["optimizer"].keys() == whole.state_dict()["optimizer"].keys()
    moments = [trainer.state_dict()["optimizer"]["state"][0]["exp_avg"] for trainer in (whole, second)]
    assert torch.equal(*moments), "the optimizer's state is saved"


def test_an_iterable_without_state_is_said_not_to_be_exact(tmp_path):
    trainer = make([make_batch(1), make_batch(2)], save_trainer_file=tmp_path / "run")
    trainer.train()
    newest = max(path for path in (tmp_path / "run").iterdir() if (path / MANIFEST).exists())
    manifest = json.loads((newest / MANIFEST).read_text())
    assert manifest["exact"] is False
    assert "the collector (list) has no state" in manifest["inexact"][0]


def test_a_trainer_that_only_saves_and_loads(tmp_path):
    policy = nn.Linear(2, 1)
    trainer = Trainer(collector=None, total_frames=10, save_trainer_file=tmp_path / "run", progress_bar=False)
    trainer.register_module("policy", policy)
    trainer.register_module(Counter(), "swapped")
    path = trainer.save_trainer(True)
    assert path.parent == tmp_path / "run"

    other = nn.Linear(2, 1)
    loaded = Trainer(collector=None, total_frames=10, progress_bar=False)
    loaded.register_module("policy", other)
    loaded.register_module("swapped", Counter())
    loaded.load_from_file(path)
    assert torch.equal(policy.weight, other.weight)


def test_nothing_is_saved_without_a_place_for_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trainer = make()
    assert trainer.save_trainer(True) is None
    trainer.train()
    assert list(tmp_path.iterdir()) == []


def test_saving_at_intervals_and_when_forced(tmp_path):
    folder = tmp_path / "run"
    trainer = make(save_trainer_file=folder, save_trainer_interval=32)
    saved = []
    for progress in trainer:
        saved.append((progress.frames, len(entries(folder)), entries(folder)[-1]))
    assert [frames for frames, _, newest in saved if int(newest) == frames] == [32, 64]
    assert trainer.save_trainer() is None, "nothing is due"
    assert int(trainer.save_trainer(force_save=True).name[:12]) == 64


def test_rotation_and_metadata(tmp_path):
    trainer = make(
        checkpoint_rotation=CheckpointRotation(tmp_path / "kept", keep_last=3),
        save_trainer_interval=16,
        checkpoint_metadata=lambda trainer: {"note": f"at {trainer.collected_frames}"},
    )
    trainer.train()
    assert [int(name) for name in entries(tmp_path / "kept")] == [32, 48, 64]
    newest = max(path for path in (tmp_path / "kept").iterdir() if (path / MANIFEST).exists())
    assert json.loads((newest / MANIFEST).read_text())["metadata"] == {"note": "at 64"}


def test_metadata_may_be_nothing(tmp_path):
    trainer = make(save_trainer_file=tmp_path / "run", checkpoint_metadata=lambda trainer: None)
    trainer.train()
    [newest, *_] = sorted((path for path in (tmp_path / "run").rglob(MANIFEST)), reverse=True)
    assert json.loads(newest.read_text())["metadata"] == {}


def test_a_module_that_is_registered_after_loading_gets_its_state(tmp_path):
    trainer = make(save_trainer_file=tmp_path / "run")
    Counter().register(trainer)
    trainer.train()

    late = make(total_frames=128, save_trainer_file=tmp_path / "run")
    late.load_from_file(tmp_path / "run")
    with pytest.raises(StorageError, match="has state of counter, which a script registered as a module"):
        late.train()
    counter = Counter()
    counter.register(late)
    assert counter.count == 4
    late.train()
    assert counter.count == 8


def test_a_module_registered_on_the_trainer_of_a_config_is_resumed(tmp_path):
    run = make_run("run.total_frames=64", "loss.use=ppo", folder=tmp_path)
    counter = Counter()
    counter.register(run.trainer)
    run.trainer.stop_at = 32
    run.trainer.train()
    seen = counter.count
    again = make_run("run.total_frames=64", "loss.use=ppo", folder=tmp_path, resume=True)
    resumed = Counter()
    resumed.register(again.trainer)
    assert resumed.count == seen > 0
    again.trainer.train()
    assert resumed.count == 2 * seen


def test_names_and_objects_that_cannot_be_registered():
    trainer = make()
    trainer.register_module("mine", Regression())
    with pytest.raises(HookError, match="the name 'mine' is taken by a Regression"):
        trainer.register_module("mine", Counter())
    with pytest.raises(HookError, match="the name 'progress' is taken"):
        trainer.register_module("progress", Counter())
    with pytest.raises(HookError, match="a int has no state_dict and load_state_dict"):
        trainer.register_module("number", 3)


def test_files_that_cannot_be_loaded(tmp_path):
    trainer = make()
    with pytest.raises(StorageError, match="does not exist"):
        trainer.load_from_file(tmp_path / "nowhere")
    file = tmp_path / "weights.pt"
    torch.save({}, file)
    with pytest.raises(StorageError, match="is a file; checkpoints are folders"):
        trainer.load_from_file(file)
    with pytest.raises(ConfigError, match="is a file; checkpoints are saved into a folder"):
        make(save_trainer_file=file)


def test_the_back_end_is_that_of_the_argument_or_the_environment(tmp_path, monkeypatch):
    from rlcore import PluginError

    monkeypatch.setenv("CKPT_BACKEND", "nosuch")
    with pytest.raises(PluginError, match="nosuch"):
        make(save_trainer_file=tmp_path / "run")
    trainer = make(save_trainer_file=tmp_path / "run", checkpoint="torch")
    trainer.train()
    newest = max(path for path in (tmp_path / "run").iterdir() if (path / MANIFEST).exists())
    assert json.loads((newest / MANIFEST).read_text())["backend"] == "torch"


def test_an_operation_that_raises_leaves_the_last_boundary(tmp_path):
    whole = make(total_frames=64)
    whole.train()

    def build():
        return make(save_trainer_file=tmp_path / "run", save_trainer_interval=1000)

    def fail(batch):
        if trainer.collected_frames == 48:
            raise ZeroDivisionError

    trainer = build()
    trainer.register_op("post_optim_log", fail)
    with pytest.raises(ZeroDivisionError):
        trainer.train()
    assert trainer.progress.updates == 5, "it failed in the middle of an iteration"
    resumed = build().load_from_file(tmp_path / "run")
    assert resumed.collected_frames in (0, 16, 32)
    assert resumed.progress.updates == resumed.collected_frames // 8
    resumed.train()
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(resumed)[name]), name


def test_a_closed_collector_and_the_state_of_batches(tmp_path):
    collector = Batches()
    trainer = make(collector, save_trainer_file=tmp_path / "run")
    trainer.train()
    assert trainer.state_dict()["collector"]["source"] == {"position": 4}
    assert collector.closed == 1
