"""Compiled updates of several ranks."""

from __future__ import annotations

import copy

import pytest
import torch
from torch.testing import assert_close

from tests.unit.learners.test_ranks import data, learner_of, parts, trained_alone, weights


class Summing:
    """A rank that is told what the sum is."""

    size = 2

    def __init__(self, rank):
        self.rank, self.given, self.flat = rank, None, None

    def sum_(self, flat):
        self.flat = flat.clone()
        if self.given is not None:
            flat.copy_(self.given)


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
def test_compiled_updates_of_two_ranks_are_eager_updates_of_one(monkeypatch):
    minibatches = data()
    alone = trained_alone(minibatches, max_grad_norm=0.1)
    learners = []
    # the compiler is not for threads: each rank takes its update after the other, with what was summed by hand
    summed = [learner_of(Summing(rank), max_grad_norm=0.1, compile=True) for rank in range(2)]
    for number, x in enumerate(minibatches):
        shares = parts(x, 12, 0) if number == 3 else parts(x, 6, 6)
        flats = []
        for learner in summed:
            learner.group.given = None
            state = copy.deepcopy(learner.model.state_dict()), copy.deepcopy(learner.optimizers["all"].state_dict())
            learner.update(shares[learner.group.rank])
            flats.append(learner.group.flat)
            learner.model.load_state_dict(state[0])
            learner.optimizers["all"].load_state_dict(state[1])
            learner.follow()
        for learner in summed:
            learner.group.given = flats[0] + flats[1]
            learner.update(shares[learner.group.rank])
    learners = summed
    assert all(map(torch.equal, *map(weights, learners)))
    assert_close(weights(learners[0]), weights(alone), rtol=1e-4, atol=1e-5)
