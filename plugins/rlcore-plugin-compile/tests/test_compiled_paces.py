"""Compiled updates of several optimizers, at paces of their own."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch
from rlcore_plugin_testing.compare import difference

from rlcore.errors import NumericalError

# the tests of the eager update, and what they are made of
eager = import_module("plugins.rlcore-plugin-gradient.tests.test_paces")
(Following, FollowingNormalised, Normalised, Separate, Whole, learner_of, minibatches, sections, train, weights) = (
    eager.Following,
    eager.FollowingNormalised,
    eager.Normalised,
    eager.Separate,
    eager.Whole,
    eager.learner_of,
    eager.minibatches,
    eager.sections,
    eager.train,
    eager.weights,
)


class ThroughCritics(Separate):
    """As written without care: the actor's loss has gradients to the critics."""

    def forward(self, minibatch, names=None):
        result = super().forward(minibatch, names)
        if "loss_actor" in names:
            action = self.actor(minibatch["x"]).tanh()
            result["loss_actor"] = -self.critics(torch.cat([minibatch["x"], action], -1)).mean()
        return result


class Often(Normalised):
    """Its targets are copied in every second update."""

    tau, interval = 1.0, 2


class Doubling:
    """One of two ranks, of which the other has the same rows."""

    rank, size = 0, 2

    def sum_(self, flat):
        flat.mul_(2)

    def share(self, numbers):
        return [tuple(numbers)] * 2


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize(
    ("loss", "every"), [(Normalised, 2), (Often, 1), (Whole, 1), (ThroughCritics, 1), (FollowingNormalised, 2)]
)
def test_compiled_updates_are_eager_ones(loss, every):
    learners = [learner_of(*sections(every), loss=loss, max_grad_norm=0.5, compile=flag) for flag in (False, True)]
    for number, minibatch in enumerate(minibatches(8)):
        if number == 4:
            for learner in learners:  # as a schedule does, for one of them
                learner.optimizers["actor"].param_groups[0]["lr"] = 0.001
        values = [learner.update(dict(minibatch)) for learner in learners]
        assert list(values[0]) == list(values[1])
        for name, value in values[0].items():
            torch.testing.assert_close(values[1][name], value, rtol=1e-4, atol=1e-5)
    for one, other in zip(*map(weights, learners), strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5)
    assert difference(*(learner.state_dict() for learner in learners)) is None


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
def test_each_compiled_optimizer_skips_by_itself():
    class Spoils(Separate):
        def forward(self, minibatch, names=None):
            result = super().forward(minibatch, names)
            return result | {"loss_actor": result["loss_actor"] * minibatch["spoil"]}

    learner = learner_of(*sections(every=1), loss=Spoils, compile=True)
    for spoil, moved in ((1.0, True), (torch.nan, False), (1.0, True)):
        before = {part: weights(learner, part) for part in learner.model.parts()}
        learner.update({**minibatches(1)[0], "spoil": torch.tensor(spoil)})
        for part, values in before.items():
            same = all(map(torch.equal, values, weights(learner, part)))
            assert same == (part == "actor" and not moved)
    with pytest.raises(NumericalError, match="1 optimisation steps"):
        learner.check_finite()


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize(("every", "loss"), [(1, Separate), (2, Separate), (2, Following)])
def test_compiled_updates_of_a_rank_are_eager_ones_at_every_pace(every, loss):
    """Three optimizers with clipping; the compiler is not for threads, so that the sum is made by hand."""
    learners = [
        learner_of(*sections(every), loss=loss, group=Doubling(), max_grad_norm=0.5, compile=flag)
        for flag in (False, True)
    ]
    eager, compiled = (train(learner, minibatches()) for learner in learners)
    assert learners[1]._compiled._functions, "it ran eagerly"
    assert [set(values) for values in compiled] == [set(values) for values in eager]
    for one, other in zip(eager, compiled, strict=True):
        torch.testing.assert_close(other, {name: one[name] for name in other}, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(weights(learners[1]), weights(learners[0]), rtol=1e-4, atol=1e-5)
