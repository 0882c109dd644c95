"""A function that is recorded once and replayed."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_compile.cuda_graph import CudaGraph


@pytest.mark.slow
@pytest.mark.cuda
def test_a_replayed_function_is_the_function():
    def step(entries, state):
        state[0].add_(entries[0])
        return entries[0] * 2, state[0].sum()

    state = [torch.zeros(3, device="cuda")]
    graph = CudaGraph(step)
    found = [graph([torch.full((3,), float(number), device="cuda")], state) for number in range(5)]
    assert [float(doubled[0]) for doubled, _ in found] == [0, 2, 4, 6, 8]
    assert [float(total) for _, total in found] == [0, 3, 9, 18, 30]


@pytest.mark.slow
@pytest.mark.cuda
def test_a_compiled_function_replays_columns_of_wider_rows():
    rows = torch.arange(80.0, device="cuda").reshape(8, 10)
    graph = CudaGraph(torch.compile(lambda entries: (entries[0] * 2,), fullgraph=True, dynamic=False))
    for shift in range(5):
        (doubled,) = graph([(rows + shift)[:, 2:5]])
        assert torch.equal(doubled, (rows + shift)[:, 2:5] * 2)
