"""The loop's life cycle, and building: what is left behind when something goes wrong."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch

import rlcore
from rlcore import ConfigError, hookimpl
from rlcore.errors import StorageError
from rlcore.run.asked import ResumeOptions


def weights(run):
    return [parameter.detach().clone() for parameter in run.trainer.model.parameters()]


def test_a_run_trains_to_its_last_frame(build):
    progress = build().trainer.train()
    assert (progress.frames, progress.iterations, progress.updates) == (96, 3, 12)


def test_two_equal_runs_are_equal_bit_for_bit(build):
    first, second = build(), build()
    first.trainer.train()
    torch.rand(5)
    second.trainer.train()
    assert all(map(torch.equal, weights(first), weights(second)))
    assert first.trainer.metrics.latest.keys() == second.trainer.metrics.latest.keys()


def test_another_seed_is_another_run(build):
    first, second = build(), build(run={"seed": 2})
    assert not all(map(torch.equal, weights(first), weights(second)))


def test_a_trainer_can_be_iterated(build):
    trainer = build().trainer
    assert [progress.frames for progress in trainer] == [32, 64, 96]
    assert trainer.done


def test_a_run_stops_at_the_frame_it_was_told(build):
    trainer = build(write=True).trainer
    trainer.stop_at = 50
    assert trainer.train().frames == 64, "at the end of the iteration"
    assert trainer.last_checkpoint.name.startswith("000000000064-")


def test_a_stop_request_before_the_first_frame_is_kept(build):
    trainer = build(write=True).trainer
    trainer.request_stop("changed my mind")
    assert trainer.train().frames == 0
    assert trainer.stop_reason == "changed my mind"


def test_leaving_the_loop_early_is_no_error(build):
    calls = []

    class Ending:
        @hookimpl
        def on_exception(self, error):
            calls.append(error)

        @hookimpl
        def shutdown(self):
            calls.append("shutdown")

    for progress in build([Ending()]).trainer:
        if progress.frames == 32:
            break
    assert calls == ["shutdown"]


def test_after_training_state_can_still_be_taken_and_saved(build):
    run = build(write=True, logger=[{"use": "csv"}])
    run.trainer.train()
    assert run.trainer.state_dict()["progress"]["frames"] == 96
    assert run.trainer.save().is_dir()


def test_a_run_that_writes_nothing_makes_no_file_and_saves_nothing(build, workdir):
    run = build(logger=[{"use": "csv"}])
    before = set(workdir.rglob("*"))
    run.trainer.train()
    assert run.trainer.save() is None
    assert set(workdir.rglob("*")) == before


def test_no_thread_is_left_after_a_run(build):
    before = set(threading.enumerate())
    run = build(write=True, logger=[{"use": "csv"}, {"use": "tensorboard"}])
    assert set(threading.enumerate()) - before
    run.trainer.train()
    assert not set(threading.enumerate()) - before


def test_a_part_that_fails_to_close_is_reported_and_the_others_are_closed(build, caplog):
    run = build(write=True, logger=[{"use": "csv"}])

    def fail():
        raise OSError("stuck")

    run.trainer.collector.close = fail
    run.trainer.train()
    assert "closing the collector failed" in caplog.text
    (writer,) = run.trainer.metrics.writers
    assert not writer.thread.is_alive()


def test_a_part_is_one_whoever_asks_for_it_or_replaces_it(build):
    trainer = build().trainer
    parts = trainer.parts
    for name in ("progress", "model", "buffer", "learner", "metrics", "hooks", "transforms", "estimator", "evaluator"):
        assert getattr(trainer, name) is getattr(parts, name)
    trainer.buffer = other = build().trainer.buffer
    assert parts.buffer is other


# building


def test_the_run_folder_holds_the_resolved_config(build):
    run = build(write=True)
    assert rlcore.load_config(run.folder / "config.toml").resolved() == run.config.resolved()


def test_a_second_run_of_one_name_is_refused(build):
    build(write=True)
    with pytest.raises(ConfigError, match=r"run folder 'runs/tiny' exists already; continue it with --resume"):
        build(write=True)


def test_resuming_what_does_not_exist_is_refused(build):
    with pytest.raises(ConfigError, match="does not exist"):
        build(write=True, resume=True)


@pytest.mark.parametrize(
    "sections",
    [
        {"run": {"device": "cuda:99"}},
        {"env": {"use": "gymnasium", "id": "NoSuchEnv-v0"}},
        {"collector": {"frames_per_batch": 33}, "env": {"use": "gymnasium", "id": "CartPole-v1", "num_envs": 2}},
        {"buffer": {"minibatch_size": 64}},
        {"model": {"parts": ["actor"]}},
        {"scheduler": [{"use": "linear", "target": "nope"}]},
        {"optimizer": [{"use": "adam", "parameters": ["nope"]}]},
    ],
    ids=lambda sections: next(iter(sections)),
)
def test_a_run_that_cannot_be_built_leaves_no_folder_behind(build, sections):
    with pytest.raises(ConfigError):
        build(write=True, **sections)
    assert not Path("runs/tiny").exists()
    assert build(write=True).folder.is_dir(), "once repaired, it begins under the same name"


def test_a_loss_whose_parts_the_model_does_not_build_names_both(build):
    with pytest.raises(ConfigError, match=r"loss 'ppo' .* requires the model parts critic, .*'mlp' .* it builds actor"):
        build(model={"parts": ["actor"]}, estimator=None)


def test_a_constructor_that_fails_says_whose_it_was(build, workdir):
    (workdir / "fails.py").write_text(
        "from rlcore import Component, hookimpl\n"
        "class Fails:\n"
        "    def __init__(self, config, context):\n"
        "        raise ValueError('no licence')\n"
        "@hookimpl\n"
        "def provide_components():\n"
        "    return [Component('hook', 'fails', Fails)]\n"
    )
    with pytest.raises(ValueError, match="no licence") as raised:
        build(write=True, plugins={"files": ["fails.py"]}, hook=[{"use": "fails"}])
    assert raised.value.__notes__ == ["raised while building hook 'fails' (fails.py loose file)"]
    assert not Path("runs/tiny").exists()


# resuming


def test_a_resumed_run_says_what_became_of_each_component(build):
    first = build(write=True)
    first.trainer.stop_at = 32
    first.trainer.train()
    report = {line.name: line.outcome for line in build(write=True, resume=True).report}
    assert report["model"] == report["optimizer.adam"] == report["progress"] == report["generators"] == "restored"
    assert report["estimator"] == "not stateful"
    assert "env" not in report, "its state is the collector's"


def test_a_resumed_run_has_the_state_it_was_saved_with(build):
    first = build(write=True, transform=[{"use": "observation-norm", "frames": 50}])
    first.trainer.stop_at = 64
    first.trainer.train()
    expected = first.trainer.state_dict()
    second = build(write=True, resume=True, transform=[{"use": "observation-norm", "frames": 50}])
    found = second.trainer.state_dict()
    assert set(found) == set(expected)
    for name in set(expected) - {"generators"}:
        assert flat(found[name]) == flat(expected[name]), name


def flat(state):
    from rlcore.state.tree import flatten

    tensors = {}
    tree = flatten(state, "", tensors)
    return tree, {name: tensor.tolist() for name, tensor in tensors.items()}


def test_resuming_with_another_model_is_refused(build):
    first = build(write=True)
    first.trainer.train()
    with pytest.raises(StorageError, match="state of model in the checkpoint does not fit"):
        build(write=True, resume=ResumeOptions(accept_changes=True), model={"hidden": [16]})
    with pytest.raises(ConfigError, match=r"model.hidden = \[16\] here, \[8\] in the run"):
        build(write=True, resume=True, model={"hidden": [16]})


def test_resuming_without_a_hook_that_had_state_is_refused(build, workdir):
    (workdir / "stateful.py").write_text(
        "from rlcore import Component, hookimpl\n"
        "class Keeps:\n"
        "    def __init__(self, config, context):\n"
        "        pass\n"
        "    @hookimpl\n"
        "    def post_steps(self):\n"
        "        pass\n"
        "    def state_dict(self):\n"
        "        return {}\n"
        "    def load_state_dict(self, state):\n"
        "        pass\n"
        "@hookimpl\n"
        "def provide_components():\n"
        "    return [Component('hook', 'keeps', Keeps)]\n"
    )
    build(write=True, plugins={"files": ["stateful.py"]}, hook=[{"use": "keeps"}]).trainer.train()
    written = r"has state of hook.keeps \(written by stateful.py\), which this .*--drop hook.keeps"
    with pytest.raises(StorageError, match=written):
        build(write=True, resume=ResumeOptions(accept_changes=True))
    run = build(write=True, resume=ResumeOptions(drop=("hook.keeps",), accept_changes=True))
    assert "hook.keeps: dropped" in map(str, run.report)
    assert "hook.keeps was dropped at frame 96" in run.trainer.parts.provenance.inexact


def test_another_version_is_noted_when_resuming(build, monkeypatch):
    build(write=True).trainer.train()
    from rlcore.config import sections

    versions = sections.versions
    monkeypatch.setattr(sections, "versions", lambda host: versions(host) | {"rlcore-plugin-mlp": "9.9"})
    report = {line.name: line.outcome for line in build(write=True, resume=True).report}
    assert report["model"] == "restored, but rlcore-plugin-mlp is 9.9 here and was 0.1.0"
    assert report["optimizer.adam"] == "restored"


def test_the_weights_of_a_run_can_be_loaded_into_another(build, write_config):
    first = build(write=True)
    first.trainer.train()
    second = rlcore.build(rlcore.load_config(write_config(run={"name": "other"})), write=False)
    assert second.load_weights(first.folder / "checkpoints") == 96
    assert all(map(torch.equal, weights(first), weights(second)))


def test_a_run_from_the_weights_of_another_trains_its_own_frames(build, write_config):
    sections = {"scheduler": [{"use": "linear"}], "transform": [{"use": "transforms:reward-sum"}]}
    first = build(write=True, **sections)
    first.trainer.train()
    assert any(first.trainer.transforms[0].state_dict()["carried"]), "an episode is in its middle"
    path = write_config(run={"name": "other", "total_frames": 64}, **sections)
    second = rlcore.build(rlcore.load_config(path), write=False)
    assert second.load_weights(first.folder) == 96
    assert second.trainer.transforms[0].state_dict()["carried"] is None
    optimizer = second.trainer.parts.learner.optimizers["adam"]
    full = optimizer.param_groups[0]["lr"]
    rates = [optimizer.param_groups[0]["lr"] / full for _ in second.trainer]
    assert second.trainer.progress.frames == 64
    assert rates == pytest.approx([0.5, 0])
    assert not all(map(torch.equal, weights(first), weights(second)))
