"""Hooks get what `rlcore.types.trainer` promises, and those of rlcore need no more."""

from __future__ import annotations

import inspect
import math
import typing

import pytest
import torch
from tensordict import TensorDict

from rlcore import types
from rlcore.core_hooks.progress_lines import ProgressLines
from rlcore.core_hooks.status import StatusHook
from rlcore.core_hooks.time_limit import TimeLimit
from rlcore.plugins.host import PluginHost, installed
from rlcore.plugins.known import component_names, use_of
from rlcore.run_folder.status import Status
from rlcore.training.loop import Loop
from rlcore.types import trainer as promises
from tests.promised import Guarded, attributes, guard_hooks, members

NAMES = vars(promises) | {"TensorDict": TensorDict, "Tensor": torch.Tensor, "Key": types.Key}

# what each component needs to run in the tiny run
CONFIGS = {
    "batch-sub-sampler": {"batch_size": 16},
    "clear-cuda-cache": {"interval": 2},
    "console-table": {},
    "count-frames-log": {},
    "diagnostics": {},
    "early-stopping": {"monitor": "evaluation/return", "patience": 64},
    "explained-variance": {},
    "faulty": {},
    "killer": {"plan": "no-strike.json"},
    "learning-curve": {},
    "log-scalar": {},
    "log-timing": {},
    "progress-bar": {},
    "record": {},
    "recorder": {"path": "recorded.jsonl"},
    "health": {},
    "notebook": {},
    "resets": {"at": [32]},
    "reward-clip": {},
    "reward-normalizer": {},
    "select-keys": {"keys": ["observation", "action", "sample_log_prob", "next"]},
    "sweep-trial": {"trial": 0},
    "toy": {},
    "update-weights": {},
    "video": {},
}
# those that need a buffer of data, or an env of their plugin: the suite of hooks runs them in its tests
ELSEWHERE = {"env-log", "fqe"}
INTERNAL = {
    "status": lambda folder: StatusHook(Status(folder)),
    "progress-lines": lambda folder: ProgressLines(),
    "time-limit": lambda folder: TimeLimit(math.inf, "1s"),
}


def is_kind(value, hint):
    """Return whether a value is what an annotation says; of a protocol it has every member."""
    origin = typing.get_origin(hint)
    if hint is typing.Any:
        return True
    if origin is not None and type(None) in typing.get_args(hint):
        return any(is_kind(value, kind) for kind in typing.get_args(hint))
    if getattr(hint, "_is_protocol", False):
        return all(hasattr(value, name) for name in members(hint))
    return isinstance(value, origin or hint)


def promised_of(protocol):
    """Yield (name, member, annotation) of what a protocol promises; the annotation of a property is what it returns."""
    for base in reversed([base for base in protocol.__mro__ if base.__module__ == promises.__name__]):
        for name, hint in typing.get_type_hints(base, NAMES).items():
            yield name, None, hint
        for name, member in vars(base).items():
            if isinstance(member, property):
                yield name, member, typing.get_type_hints(member.fget, NAMES)["return"]
            elif inspect.isfunction(member) and not name.startswith("_"):
                yield name, member, None


def hook_components():
    host = PluginHost()
    for entry in installed():
        if entry.distribution.startswith("rlcore-plugin-"):
            host.load(entry.name)
    return [provided.component.name for provided in host.registry.of_kind("hook")]


@pytest.mark.parametrize("protocol", [promises.Trainer, promises.ScriptTrainer], ids=["hooks", "hook objects"])
def test_the_trainer_is_what_hooks_are_promised(build, protocol):
    trainer = build(evaluator={"use": "episodes", "episodes": 1}, write=True).trainer
    trainer.train()
    for name, member, hint in promised_of(protocol):
        assert hasattr(trainer, name), name
        if hint is not None:
            assert is_kind(getattr(trainer, name), hint), (name, hint)
        else:
            expected = list(inspect.signature(member).parameters.values())[1:]
            actual = list(inspect.signature(getattr(trainer, name)).parameters.values())
            assert [(p.name, p.kind, p.default) for p in actual] == [(p.name, p.kind, p.default) for p in expected]


def test_the_loop_alone_keeps_the_promise_to_hooks(build):
    assert {name for name in members(promises.Trainer) if not hasattr(Loop, name)} == attributes(promises.Trainer) - {
        "progress"
    }, "set by its constructor"


@pytest.mark.parametrize(
    ("protocol", "part"), [(promises.RunMetrics, "metrics"), (promises.TrainerHooks, "hooks")], ids=["metrics", "hooks"]
)
def test_the_parts_are_what_hooks_are_promised(build, protocol, part):
    value = getattr(build().trainer, part)
    for name, member, hint in promised_of(protocol):
        if hint is not None:
            assert is_kind(getattr(value, name), hint), (name, hint)
        else:
            expected = list(inspect.signature(member).parameters)[1:]
            assert list(inspect.signature(getattr(value, name)).parameters) == expected


def test_the_guard_lets_through_what_is_promised_and_nothing_else(build):
    trainer = build().trainer
    guarded = Guarded(trainer, promises.Trainer)
    guarded.stop_at = 32
    assert (trainer.stop_at, guarded.progress, guarded.metrics.latest) == (32, trainer.progress, {})
    for touch in (lambda: guarded.parts, lambda: guarded.metrics.every, lambda: setattr(guarded, "model", None)):
        with pytest.raises(AssertionError, match=r"which (Trainer|RunMetrics) does not"):
            touch()


def test_every_hook_component_is_run_below():
    assert sorted(hook_components()) == sorted({*CONFIGS, *ELSEWHERE})


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_a_hook_component_needs_no_more_of_the_trainer(name, build, monkeypatch):
    guard_hooks(monkeypatch)
    run = build(
        write=True,
        hook=[{"use": use_of(name) if name in component_names() else name, **CONFIGS[name]}],
        logger=[{"use": "csv"}],
        evaluator={"use": "episodes", "episodes": 2, "every": 32},
    )
    run.trainer.train()
    hook = next(hook for hook in run.trainer.hooks.hooks if hook.name == name)
    assert hook.calls > 0


@pytest.mark.parametrize("name", sorted(INTERNAL))
def test_a_hook_of_the_command_line_needs_no_more_of_the_trainer(name, build, monkeypatch, tmp_path):
    guard_hooks(monkeypatch)
    hook = INTERNAL[name](tmp_path)
    run = build([hook], write=True, evaluator={"use": "episodes", "episodes": 2, "every": 32})
    assert run.trainer.train().frames == 96
    assert run.trainer.hooks.hooks[-1].calls > 0
