"""The records that parts hand to each other."""

from __future__ import annotations

from rlcore.types import EvaluationResult


def test_an_evaluation_gives_means_and_arrays():
    result = EvaluationResult(100, (1, 2), (1.0, 3.0), (10, 20))
    assert (result.mean_return, result.mean_length) == (2.0, 15.0)
    assert result.returns_array().tolist() == [1.0, 3.0]
    assert result.lengths_array().tolist() == [10.0, 20.0]
