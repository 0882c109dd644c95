"""Going on from a checkpoint: what may differ, and what each component gets back."""

from __future__ import annotations

import copy

import pytest
import torch
from rlcore_plugin_testing import make_config, make_run

from rlcore.checkpoints.manifest import scan
from rlcore.config.changes import FREE, changes, check_unchanged
from rlcore.errors import ConfigError, StorageError
from rlcore.run.asked import ResumeOptions
from rlcore.state.restoring import Restored, restore

# restoring


class Part:
    def __init__(self, log=None, name=""):
        self.state, self.log, self.name = None, log if log is not None else [], name

    def state_dict(self):
        return {"value": 1}

    def load_state_dict(self, state):
        self.state = state["value"]
        self.log.append(self.name)


def test_restoring_says_what_became_of_each_component():
    parts = {"a": Part(), "plain": object(), "new": Part()}
    report = restore(
        parts, {"a": {"value": 5}, "old": {}}, {"a": ", but x is 2 here and was 1"}, drop=["old"], fresh=["new"]
    )
    assert report == [
        Restored("old", "dropped"),
        Restored("a", "restored, but x is 2 here and was 1"),
        Restored("plain", "not stateful"),
        Restored("new", "starts over"),
    ]
    assert (parts["a"].state, parts["new"].state) == (5, None)
    assert str(report[2]) == "plain: not stateful"


def test_a_component_that_is_to_begin_anew_does_so_though_it_has_a_state():
    part = Part()
    (line,) = restore({"a": part}, {"a": {"value": 5}}, {}, fresh=["a"])
    assert (line.outcome, part.state) == ("starts over", None)


def test_components_are_restored_in_their_own_order():
    log = []
    parts = {name: Part(log, name) for name in ("progress", "model", "learner")}
    restore(parts, {name: {"value": 1} for name in ("learner", "model", "progress")}, {})
    assert log == ["progress", "model", "learner"]


def test_a_state_that_nothing_owns_is_refused_before_anything_is_restored_and_names_who_wrote_it():
    part = Part()
    states = {"a": {"value": 5}, "hook.gone": {}, "hook.lost": {}}
    with pytest.raises(StorageError) as raised:
        restore({"a": part}, states, {}, owners={"hook.gone": "some-dist"})
    message = str(raised.value)
    assert "has state of hook.gone (written by some-dist), hook.lost, which this config does not build" in message
    assert message.endswith("--drop hook.gone --drop hook.lost")
    assert part.state is None
    restore({"a": part}, states, {}, drop=["hook.gone", "hook.lost"])
    assert part.state == 5


def test_a_component_without_a_state_is_refused_before_anything_is_restored():
    part = Part()
    with pytest.raises(StorageError, match=r"has no state of hook.new, which this config builds; .*--fresh hook.new"):
        restore({"a": part, "hook.new": Part()}, {"a": {"value": 5}}, {})
    assert part.state is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop": ["hok.gone"]}, "--drop hok.gone: the checkpoint has no such state; did you mean 'hook.gone'"),
        ({"drop": ["a", "hook.gone"]}, "--drop a: this config builds it; to start it over, use --fresh a"),
        ({"drop": ["hook.gone"], "fresh": ["b"]}, "--fresh b: this config builds no such part with a state"),
        ({"drop": ["hook.gone"], "fresh": ["plain"]}, "--fresh plain: this config builds no such part with a state"),
    ],
)
def test_names_that_mean_nothing_are_refused(options, message):
    part = Part()
    with pytest.raises(ConfigError, match=message):
        restore({"a": part, "plain": object()}, {"a": {"value": 5}, "hook.gone": {}}, {}, **options)
    assert part.state is None


def test_a_state_that_does_not_fit_names_its_component():
    with pytest.raises(StorageError, match=r"(?s)state of model in the checkpoint does not fit: .*size mismatch"):
        restore({"model": torch.nn.Linear(2, 3)}, {"model": torch.nn.Linear(3, 3).state_dict()}, {})
    with pytest.raises(StorageError, match="state of a in the checkpoint does not fit"):
        restore({"a": Part()}, {"a": {"other": 5}}, {})


# what may differ


HOOKS = {"hook": [{"use": "testing:toy", "name": "one"}, {"use": "testing:toy", "name": "two"}]}


def resolved(**sections):
    return make_config(sections=HOOKS | sections).resolved()


def test_a_config_does_not_differ_from_itself():
    assert changes(resolved(), resolved()) == []
    check_unchanged([])


def leaves(value, path=()):
    """Return the path of every value of a config."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not items or (isinstance(value, list) and not any(isinstance(item, dict) for item in value)):
        return [path]
    return [found for key, item in items for found in leaves(item, (*path, key))]


def test_every_key_of_a_config_is_compared_apart_from_the_free_ones():
    config = resolved()
    compared = 0
    for path in leaves(config):
        if path[-1] == "name":
            continue
        changed = copy.deepcopy(config)
        place = changed
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = "something else"
        dotted = ".".join(str(key) for key in path)
        free = any(dotted == name or dotted.startswith(f"{name}.") for name in FREE)
        assert len(changes(config, changed)) == (0 if free else 1), dotted
        compared += not free
    assert compared > 15


def test_a_difference_names_the_key_and_both_values():
    config, changed = resolved(), resolved(loss={"use": "ppo", "clip_epsilon": 0.3})
    found = changes(config, changed)
    assert "loss.clip_epsilon = 0.3 here, absent in the run" in found
    assert "loss.use = 'ppo:ppo' here, 'testing:toy' in the run" in found
    with pytest.raises(ConfigError, match=r"(?s)config differs .*loss.clip_epsilon = 0.3 here.*--accept-changes"):
        check_unchanged(found)


def test_a_key_that_a_run_did_not_have_is_no_change_while_it_has_its_default():
    run, now = resolved(), resolved()
    now["loss"] = {**now["loss"], "younger": 0.5}
    assert changes(run, now) == ["loss.younger = 0.5 here, absent in the run"]
    assert changes(run, now, default=["loss.younger"]) == []
    assert changes(now, run, default=["loss.younger"]) == ["loss.younger = absent here, 0.5 in the run"]
    other = copy.deepcopy(now)
    other["loss"]["younger"] = 0.25
    assert changes(now, other, default=["loss.younger"]) == ["loss.younger = 0.25 here, 0.5 in the run"]


@pytest.mark.parametrize(("empty", "default"), [([], [64]), ({}, {"size": 64})])
def test_a_key_that_a_run_had_empty_is_changed_by_its_default(empty, default):
    run, now = resolved(), resolved()
    run["model"]["younger"], now["model"]["younger"] = empty, default
    (line,) = changes(run, now, default=["model.younger"])
    assert line.startswith("model.younger")
    del run["model"]["younger"]
    assert changes(run, now, default=["model.younger"]) == []


def test_entries_of_repeated_sections_are_compared_by_name_and_order():
    one, two = HOOKS["hook"]
    (line,) = changes(resolved(), resolved(hook=[two, one]))
    assert line == "hook: the order is two, one here, one, two in the run"
    found = changes(resolved(), resolved(hook=[two]))
    assert found == [
        "hook.one.name = absent here, 'one' in the run",
        "hook.one.use = absent here, 'testing:toy' in the run",
    ]


def test_a_hook_that_only_shows_something_may_come_and_go():
    bar = {"use": "progress-bar"}
    one, two = HOOKS["hook"]
    assert changes(resolved(), resolved(hook=[bar, one, two])) == []
    assert changes(resolved(hook=[one, bar, two]), resolved(hook=[one, two, bar])) == []


def test_what_cannot_be_compared_is_said():
    assert changes({}, resolved()) == ["the config of the run cannot be read, so changes in it cannot be found"]


# a whole run


def stopped(folder, **options):
    run = make_run(folder=folder, **options)
    run.trainer.stop_at = 32
    run.trainer.train()


def test_a_folder_without_any_checkpoint_starts_over_and_trains_as_a_new_run(tmp_path):
    make_run(folder=tmp_path / "new").trainer.train()
    killed = make_run(folder=tmp_path / "killed")
    killed.trainer.parts.release()
    run = make_run(folder=tmp_path / "killed", resume=True)
    assert run.report == []
    run.trainer.train()
    assert manifest(tmp_path / "killed")["digest"] == manifest(tmp_path / "new")["digest"]
    assert manifest(tmp_path / "killed")["exact"] is True


def test_a_resumed_run_is_the_uninterrupted_one(tmp_path):
    make_run(folder=tmp_path / "whole", sections=HOOKS).trainer.train()
    stopped(tmp_path / "parts", sections=HOOKS)
    make_run(folder=tmp_path / "parts", sections=HOOKS, resume=True).trainer.train()
    whole, parts = (manifest(tmp_path / name) for name in ("whole", "parts"))
    assert whole["exact"] is parts["exact"] is True
    differing = {name for name, digest in whole["digests"].items() if digest != parts["digests"][name]}
    assert differing <= {"logger.toy"}, "its file has figures of the wall clock"
    assert whole["digest"] == parts["digest"]
    rows = [(tmp_path / name / "toy" / "toy.jsonl").read_text() for name in ("whole", "parts")]
    assert without_time(rows[0]) == without_time(rows[1])


def test_a_component_that_started_over_or_was_dropped_makes_the_run_inexact_for_good(tmp_path):
    stopped(tmp_path, sections=HOOKS)
    options = ResumeOptions(drop=("hook.one",), fresh=("model",), accept_changes=True)
    run = make_run(folder=tmp_path, sections={"hook": HOOKS["hook"][1:]}, resume=options)
    run.trainer.stop_at = 48
    run.trainer.train()
    run = make_run(folder=tmp_path, sections={"hook": HOOKS["hook"][1:]}, resume=True)
    run.trainer.train()
    reasons = manifest(tmp_path)["inexact"]
    assert "hook.one was dropped at frame 32" in reasons
    assert "model started over at frame 32" in reasons


def test_loggers_may_come_and_go_and_the_resume_is_exact(tmp_path):
    make_run(folder=tmp_path / "whole").trainer.train()
    stopped(tmp_path / "parts")
    others = {"logger": [{"use": "testing:toy", "name": "another"}]}
    run = make_run(folder=tmp_path / "parts", sections=others, resume=True)
    assert {str(line) for line in run.report if line.name.startswith("logger.")} == {
        "logger.another: starts over",
        "logger.toy: dropped",
    }
    run.trainer.train()
    whole, parts = (manifest(tmp_path / name) for name in ("whole", "parts"))
    assert parts["exact"] is True
    assert whole["digest"] == parts["digest"]


def test_what_could_not_be_saved_of_episodes_is_forgotten_though_a_new_env_could_save_it(tmp_path, monkeypatch, caplog):
    """An episode was too long to be recorded; the env of the resume is in none."""
    monkeypatch.setattr("rlcore_plugin_gymnasium.serial.LONGEST", 5)
    sections = {
        "env": {"use": "gymnasium", "id": "MountainCar-v0", "num_envs": 2},
        "transform": [{"use": "transforms:reward-norm", "name": "norm"}],
        "evaluator": [],
    }
    stopped(tmp_path, sections=sections)
    run = make_run(folder=tmp_path, sections=sections, resume=True)
    assert run.trainer.collector.inexact() is None
    assert run.trainer.collector.dropped_episodes == 2
    assert "2 running episodes are dropped: their state could not be saved" in caplog.text
    assert run.trainer.parts.transforms[0].state_dict()["carried"] is None
    run.trainer.train()
    assert manifest(tmp_path)["exact"] is False


TELLING = """
from pydantic import BaseModel

from rlcore import Component, hookimpl
from rlcore.loggers.base import LoggerBase


class Telling(LoggerBase):
    class Config(BaseModel):
        pass

    def __init__(self, config, context):
        super().__init__()
        self.told = []

    def log_metrics(self, metrics, step=None):
        pass

    def state_dict(self):
        return {"rows": 2}

    def load_state_dict(self, state):
        self.told.append(dict(state))

    def branch(self):
        self.told.append("branch")


@hookimpl
def provide_components():
    return [Component("logger", "telling", Telling)]
"""


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ([], [{"rows": 2}]),
        (["run.total_frames=96"], [{"rows": 2}]),
        (["optimizer.0.lr=0.5"], [{"rows": 2}, "branch"]),
    ],
)
def test_loggers_are_told_when_training_goes_on_otherwise(tmp_path, change, told):
    (tmp_path / "telling.py").write_text(TELLING)
    sections = {"logger": [{"use": "telling"}], "plugins": {"files": [str(tmp_path / "telling.py")]}}
    stopped(tmp_path, sections=sections)
    options = ResumeOptions(accept_changes=True)
    run = make_run(*change, folder=tmp_path, sections=sections, resume=options)
    assert run.trainer.metrics.writers[0].logger.told == told
    run.trainer.train()


def test_another_domain_makes_a_resume_inexact(tmp_path):
    stopped(tmp_path)
    threads = torch.get_num_threads()
    try:
        run = make_run(f"run.threads={threads + 1}", folder=tmp_path, resume=True)
    finally:
        torch.set_num_threads(threads)
    (reason,) = run.trainer.parts.provenance.inexact
    assert reason.startswith("threads is ")
    run.trainer.collector.close()


def manifest(folder):
    return scan(folder / "toy" / "checkpoints").entries[-1].manifest


def without_time(text):
    import json

    return [
        [step, {key: value for key, value in row.items() if not key.startswith("time/")}]
        for step, row in map(json.loads, text.splitlines())
    ]
