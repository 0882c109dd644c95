"""A compiled update gathers the rows of a minibatch by itself, and sees what was changed."""

from importlib import import_module

import pytest
import torch
from rlcore_plugin_replay.row_minibatch import RowMinibatch

# the tests of the eager update, and what they are made of
eager = import_module("plugins.rlcore-plugin-gradient.tests.test_learner")
TwoParts, make, weights = eager.TwoParts, eager.make, eager.weights


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fresh_compiler")]

ONE = (("adam", "adam", {"lr": 1e-2}),)
TWO = tuple(
    ("adam", name, {"lr": 1e-2, "parameters": [name], "losses": [f"loss_{name}"]}) for name in ("actor", "critic")
)


def columns_of(seed):
    generator = torch.Generator().manual_seed(seed)
    packed = torch.randn(40, 6, generator=generator)  # entries side by side, as in a buffer
    return {"x": packed[:, :4], "y": packed[:, 4:5], "unread": packed[:, 5:]}


def refuse(key):
    raise AssertionError(f"{key} was gathered outside of the graph")


class Pair:
    """A compiled learner that is given rows, and an eager one that is given their entries."""

    def __init__(self, sections=ONE):
        self.models = [TwoParts(), TwoParts()]
        self.compiled, self.eager = (
            make(model, *sections, compile=flag) for model, flag in zip(self.models, (True, False), strict=True)
        )
        self._generator = torch.Generator().manual_seed(7)

    def update(self, columns, gather=refuse, **replaced):
        places = torch.randint(40, (16,), generator=self._generator)
        minibatch = RowMinibatch(columns, places, ("spoil",), gather)
        minibatch["spoil"] = torch.tensor(1.0)
        entries = {key: column[places] for key, column in columns.items()} | {"spoil": minibatch["spoil"]}
        minibatch.update(replaced)
        found, expected = self.compiled.update(minibatch), self.eager.update(entries | replaced)
        assert set(found) == set(expected)
        for name in expected:
            torch.testing.assert_close(found[name], expected[name], rtol=1e-4, atol=1e-5)

    def agree(self):
        for ours, theirs in zip(*map(weights, self.models), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sections", [ONE, TWO], ids=["one optimizer", "two"])
def test_it_reads_the_rows_and_gathers_none_outside(sections):
    pair, columns = Pair(sections), columns_of(1)
    for _ in range(5):
        pair.update(columns)
        columns["x"].mul_(0.9)  # as a buffer writes: in place
    pair.agree()


def test_columns_in_other_memory_are_followed():
    pair = Pair()
    for columns in (columns_of(1), columns_of(2)):
        for _ in range(3):
            pair.update(columns)
    pair.agree()


def test_an_entry_that_was_replaced_stays_replaced():
    pair, columns = Pair(), columns_of(1)
    pair.update(columns)
    other = torch.full((16, 1), 3.0)
    pair.update(columns, lambda key: {"x": torch.ones(16, 4)}[key], x=torch.ones(16, 4), y=other)
    pair.update(columns)
    pair.agree()
