"""What metrics hand to loggers as values: histograms, and configs made flat."""

import numpy as np
import pytest
import torch

from rlcore.errors import RlcoreError
from rlcore.loggers import values as log_values


@pytest.mark.parametrize(
    ("bins", "edges"),
    [
        (None, 65),
        ("tensorflow", 65),
        (4, [0.0, 1.0, 2.0, 3.0, 4.0]),
        ([0, 1, 4], [0.0, 1.0, 4.0]),
        (torch.tensor([0.0, 4.0]), [0.0, 4.0]),
        ("sturges", [0.0, 1.0, 2.0, 3.0, 4.0]),
    ],
)
def test_the_bins_of_a_histogram(bins, edges):
    found = log_values.histogram([0.0, 1.0, 2.0, 3.0, 4.0], bins)
    assert found.edges.tolist() == edges if isinstance(edges, list) else len(found.edges) == edges
    assert found.counts.sum() == 5


def test_a_rule_that_wants_too_many_bins_gets_512():
    data = np.concatenate([np.linspace(0, 1e-6, 1000), [1e9]])
    assert len(log_values.histogram(data, "fd").counts) == 512


@pytest.mark.parametrize("bins", [0, 513, [1.0], [2.0, 1.0], "nosuch", 1.5])
def test_bins_that_cannot_be(bins):
    with pytest.raises(RlcoreError, match="bins = "):
        log_values.histogram([1.0, 2.0], bins)


def test_a_histogram_counts_what_is_finite():
    found = log_values.histogram(torch.tensor([[0.0, 1.0], [1.0, float("nan")]]), bins=2)
    assert (found.counts.tolist(), found.edges.tolist(), found.not_finite) == ([1, 2], [0.0, 0.5, 1.0], 1)
    assert (found.total, found.squares) == (2.0, 2.0)
    assert log_values.histogram([], bins=2).counts.sum() == 0
    with pytest.raises(RlcoreError, match="made of numbers"):
        log_values.histogram(["a"])


def test_a_nested_config_is_flat_by_dotted_names():
    config = {"run": {"seed": 1}, "hook": [{"name": "clip", "limit": 2}, {"on": True}], "layers": [64, 64]}
    assert dict(log_values.flat(config)) == {
        **{"run.seed": 1, "hook.clip.name": "clip", "hook.clip.limit": 2, "hook.1.on": True},
        "layers": [64, 64],
    }
