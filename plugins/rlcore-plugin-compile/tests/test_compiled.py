"""Compiled updates are the eager ones, and what cannot be compiled is told."""

from __future__ import annotations

import logging
import math
from importlib import import_module

import pytest
import torch

from rlcore import ConfigError, hookimpl
from rlcore.errors import NumericalError

# the tests of the eager update, and what they are made of
eager = import_module("plugins.rlcore-plugin-gradient.tests.test_learner")
(TwoParts, equal, make, minibatches, skipping, weights) = (
    eager.TwoParts,
    eager.equal,
    eager.make,
    eager.minibatches,
    eager.skipping,
    eager.weights,
)


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
def test_a_hook_on_the_optimizer_is_called_by_a_compiled_learner_too():
    calls, models = [], (TwoParts(), TwoParts())
    eager, compiled = (
        make(m, ("adam", "adam", {}), compile=flag) for m, flag in zip(models, (False, True), strict=True)
    )
    for number, minibatch in enumerate(minibatches(6)):
        if number == 3:
            compiled.optimizers["adam"].register_step_post_hook(lambda *_: calls.append(1))
        eager.update(dict(minibatch))
        compiled.update(dict(minibatch))
    assert len(calls) == 3
    for ours, theirs in zip(weights(models[1]), weights(models[0]), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    compiled.update(next(minibatches(spoil=math.nan)))
    with pytest.raises(NumericalError):
        compiled.end_iteration()


class Watch:
    @hookimpl
    def post_loss(self):
        pass


def test_without_a_compiler_compile_is_refused_with_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    with pytest.raises(ConfigError, match=r"needs a C\+\+ compiler, and '/nonexistent/c\+\+' is not .*set it to false"):
        make(TwoParts(), ("adam", "adam", {}), compile=True)


def test_a_hook_between_loss_and_step_splits_a_compiled_update_aloud(caplog):
    with caplog.at_level(logging.WARNING):
        learner = make(TwoParts(), ("adam", "adam", {}), hooks=[Watch()], compile=True)
    assert "a hook between loss and step splits the update" in caplog.text
    learner.update(next(minibatches()))


@pytest.mark.parametrize(
    "sections",
    [[("sgd", "sgd", {})], [("adam", "a", {"parameters": ["actor"]}), ("sgd", "b", {"parameters": ["critic"]})]],
)
def test_what_cannot_be_compiled_is_refused_when_the_run_is_built(sections):
    with pytest.raises(ConfigError, match=r"\[learner\] compile = true works with"):
        make(TwoParts(), *sections, compile=True)


def assert_compiled_is_eager(kind, keys, max_norm, sizes):
    eager, compiled = TwoParts(), TwoParts()
    first, second = (
        make(model, (kind, kind, keys), max_grad_norm=max_norm, compile=flag)
        for model, flag in ((eager, False), (compiled, True))
    )
    for size in sizes:
        for minibatch in minibatches(10, size):
            expected, found = first.update(dict(minibatch)), second.update(dict(minibatch))
            assert set(expected) == set(found)
            for name in expected:
                torch.testing.assert_close(found[name], expected[name], rtol=1e-4, atol=1e-5)
        for learner in (first, second):
            learner.optimizers[kind].param_groups[0]["lr"] /= 2
    for ours, theirs in zip(weights(compiled), weights(eager), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    return second, compiled


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize(("kind", "max_norm"), [("adam", None), ("adamw", 0.1)])
def test_compiled_steps_are_eager_steps(kind, max_norm):
    learner, model = assert_compiled_is_eager(kind, {"lr": 1e-2, "weight_decay": 0.1}, max_norm, [16, 16])
    before = weights(model)
    learner.update(next(minibatches(spoil=math.nan)))
    assert equal(weights(model), before)
    with pytest.raises(NumericalError):
        learner.end_iteration()


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
def test_a_compiled_learner_skips_as_an_eager_one():
    model, learner, schedule = skipping("adam", 2, compile=True)
    learner.update(next(minibatches()))
    learner.end_iteration()
    before = weights(model)
    for _ in range(2):
        learner.update(next(minibatches(spoil=math.nan)))
        learner.end_iteration()
    assert equal(weights(model), before)
    assert (learner.skipped_updates, schedule.calls) == (2, 4)
    learner.update(next(minibatches(spoil=math.inf)))
    with pytest.raises(NumericalError):
        learner.end_iteration()


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
def test_minibatches_of_two_sizes_are_two_compiled_graphs():
    assert_compiled_is_eager("adam", {"lr": 1e-2}, None, [16, 8])


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
def test_two_compiled_learners_in_one_process_keep_apart():
    assert_compiled_is_eager("adam", {"lr": 1e-2}, None, [16])
    assert_compiled_is_eager("adam", {"lr": 1e-2}, 0.1, [16])


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
def test_a_compiled_run_is_the_eager_run(build):
    settings = {"max_grad_norm": 1.0}
    runs = [build(learner=settings | {"compile": flag}, scheduler=[{"use": "linear"}]) for flag in (False, True)]
    for run in runs:
        run.trainer.train()
    eager, compiled = (run.trainer for run in runs)
    assert eager.progress == compiled.progress
    for ours, theirs in zip(weights(compiled.model), weights(eager.model), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
    assert set(eager.metrics.latest) == set(compiled.metrics.latest)
