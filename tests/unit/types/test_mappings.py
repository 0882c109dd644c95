"""Mappings by name, whatever library they are of."""

import pytest
import torch
from tensordict import TensorDict

from rlcore.types.mappings import detached, is_mapping


@pytest.mark.parametrize("value", [{}, TensorDict({}, [2])])
def test_mappings_and_tensordicts_have_entries(value):
    assert is_mapping(value)


@pytest.mark.parametrize("value", [None, 1.0, [("loss", 1)], torch.zeros(2)])
def test_other_values_have_none(value):
    assert not is_mapping(value)


def test_values_lose_their_graphs_and_numbers_stay():
    weight = torch.ones((), requires_grad=True)
    values = detached({"loss": weight * 2, "count": 3})
    assert (float(values["loss"]), values["loss"].requires_grad, values["count"]) == (2.0, False, 3)
