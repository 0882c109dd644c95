"""What a loss does besides returning tensors: with a compiled update it is right, or refused by name."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_compile.side_effects import Attributes, compiled_without_side_effects
from torch import nn

from rlcore import ConfigError


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Linear(2, 1)
        self.calls, self.seen, self.by_name, self.mean = 0, [], {"a": 1.0}, torch.zeros(())


def count(loss):
    loss.calls += 1


def append(loss):
    loss.seen.append(None)


def assign(loss):
    loss.by_name["a"] = 2.0


def move(loss):
    loss.mean += 1


def begin(loss):
    loss.part.latest = 0


CALLS, SEEN = 0, []


def count_outside(loss):
    global CALLS
    CALLS += 1


def append_outside(loss):
    SEEN.append(None)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (count, "calls"),
        (append, "seen"),
        (assign, "by_name"),
        (move, "mean"),
        (begin, "part.latest"),
        (count_outside, rf"the global {__name__}.CALLS"),
        (append_outside, rf"the global {__name__}.SEEN"),
    ],
)
def test_a_loss_that_changes_itself_is_refused_by_name(change, name):
    loss = Loss()
    with pytest.raises(ConfigError, match=rf"\[learner\] compile = true: Loss changes {name}, which"):
        compiled_without_side_effects(loss, lambda: change(loss))


def test_weights_and_values_that_stay_are_no_changes():
    loss = Loss()
    attributes = Attributes(loss)
    with torch.no_grad():
        loss.part.weight += 1
    loss.calls = int("0")
    loss.by_name = loss.by_name
    assert attributes.changed() == []


class Counting(nn.Module):
    """Counts its calls."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x):
        self.calls += 1
        return (self.weight * x).sum()


class CountingOutside(Counting):
    """Counts its calls in a global."""

    def forward(self, x):
        global CALLS
        CALLS += 1
        return (self.weight * x).sum()


class Branching(Counting):
    """Does something else where a sum is above zero."""

    def forward(self, x):
        total = (self.weight * x).sum()
        return total if total > 0 else -total


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Counting, "Counting changes calls"),
        (CountingOutside, rf"CountingOutside changes the global {__name__}.CALLS"),
        (Branching, r"Branching cannot be one graph of tensors \(.*Data-dependent"),
    ],
)
def test_what_the_compiler_does_not_keep_is_refused(kind, message):
    loss = kind()
    function = torch.compile(loss, fullgraph=True, dynamic=False)
    with pytest.raises(ConfigError, match=rf"\[learner\] compile = true: {message}"):
        compiled_without_side_effects(loss, lambda: function(torch.ones(2)))
