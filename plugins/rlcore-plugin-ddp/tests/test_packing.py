"""What ranks hand each other arrives as it was: a tree, and tensors of any shape, stride and dtype."""

import pytest
import torch
from rlcore_plugin_ddp.packing import pack, unpack

TENSORS = {
    "one number that stands for many": torch.ones(1, dtype=torch.float64).expand(3)[:1],
    "many from one": torch.ones(1).expand(3),
    "transposed": torch.arange(6).reshape(2, 3).T,
    "scalar": torch.tensor(2.5, dtype=torch.bfloat16),
    "flags": torch.tensor([True, False]),
    "none": torch.empty(0, 3, dtype=torch.int16),
}


@pytest.mark.parametrize("name", TENSORS)
def test_a_tensor_arrives_as_it_was(name):
    tree, tensors = unpack(bytes(pack({"frames": [1, None]}, {name: TENSORS[name], "last": torch.ones(2)})))
    assert tree == {"frames": [1, None]}
    assert torch.equal(tensors[name], TENSORS[name])
    assert tensors[name].dtype == TENSORS[name].dtype
    assert torch.equal(tensors["last"], torch.ones(2))


def test_what_arrives_can_be_written_to_without_a_warning(recwarn):
    _, tensors = unpack(bytes(pack(None, {"weight": torch.zeros(3)})))
    tensors["weight"] += 1
    assert not recwarn.list
