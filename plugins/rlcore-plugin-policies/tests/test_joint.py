"""What several policies have goes through one tensor and comes back to the bit."""

import pytest
import torch
from rlcore_plugin_policies.joint import Joint, form_of
from rlcore_plugin_policies.shares import Shares

from rlcore.errors import PluginError

SHARES = Shares(["a", "b", "a"])


def values(**shapes):
    generator = torch.Generator().manual_seed(1)
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


@pytest.mark.parametrize(
    "given",
    [
        values(a=(5, 4, 2), b=(5, 2, 2)),
        values(a=(5, 4), b=(5, 2, 3, 2)),
        {"a": torch.arange(20).view(5, 4), "b": torch.randn(5, 2, 3)},
        {"a": torch.full((5, 4), 2**40 + 1), "b": torch.rand(5, 2)},
        {"a": torch.ones(5, 4, 1, dtype=torch.bool), "b": torch.full((5, 2, 3), 200, dtype=torch.uint8)},
    ],
)
def test_what_is_put_together_is_taken_out_again(given):
    joint = Joint(SHARES, {name: form_of(value, 1) for name, value in given.items()})
    together = joint.put(given, 6, 1)
    assert together.shape[:2] == (5, 6)
    for name, value in given.items():
        taken = joint.take(name, together, 1)
        assert taken.dtype == value.dtype
        assert torch.equal(taken, value)


def test_a_policy_that_is_missing_has_zeros_and_another_form_is_refused():
    given = values(a=(4, 2), b=(2, 3))
    joint = Joint(SHARES, {name: form_of(value, 0) for name, value in given.items()})
    together = joint.put({"a": given["a"]}, 6, 0)
    assert not joint.take("b", together, 0).any()
    assert torch.equal(joint.take("a", together, 0), given["a"])
    with pytest.raises(PluginError, match="policy 'b' gives rows of"):
        joint.put({**given, "b": given["b"].double()}, 6, 0)


def test_rows_keep_the_shape_and_dtype_that_are_asked_for():
    joint = Joint(SHARES, {"a": ((), torch.int64), "b": ((2,), torch.float32)}, (2,), torch.float32)
    together = joint.put({"a": torch.tensor([1, 2]), "b": torch.tensor([[0.5, -1.0]])}, 3, 0)
    assert together.tolist() == [[1, 0], [0.5, -1], [2, 0]]
    assert joint.take("a", together, 0).tolist() == [1, 2]
