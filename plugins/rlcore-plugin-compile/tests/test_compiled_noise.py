"""Compiled updates of losses with noise."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch
from rlcore_plugin_testing.compare import difference

# the tests of the eager update, and what they are made of
eager = import_module("plugins.rlcore-plugin-gradient.tests.test_noise")
learner_of, minibatches, train, weights = eager.learner_of, eager.minibatches, eager.train, eager.weights


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
def test_compiled_updates_with_noise_are_eager_ones():
    eager, compiled = learner_of(), learner_of(compile=True)
    for expected, found in zip(train(eager, minibatches()), train(compiled, minibatches()), strict=True):
        assert set(expected) == set(found)
        torch.testing.assert_close(found["noise"], expected["noise"], rtol=1e-4, atol=1e-6)
    for one, other in zip(weights(eager), weights(compiled), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    assert difference(eager.state_dict(), compiled.state_dict()) is None
