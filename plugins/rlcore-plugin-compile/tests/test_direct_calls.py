"""A compiled function called by its kernels: the same numbers and changes, and torch's way where that cannot be."""

import pytest
import torch
from rlcore_plugin_compile import direct_calls
from rlcore_plugin_compile.direct_calls import DirectCalls

# the first function that a process compiles takes seconds, and more where nothing is cached yet
pytestmark = pytest.mark.slow


def step(entries, state):
    """Move a weight, count, and return two results in another order than they are computed in."""
    (weight, count), (other,) = state
    product = entries[0] @ weight
    total = product.sum() + entries[1].mean() + other.sum()
    weight.sub_(0.1 * product.mean())
    count.add_(1)
    return total, product


def new_state():
    generator = torch.Generator().manual_seed(0)
    return [[torch.randn(3, 2, generator=generator), torch.zeros(())], [torch.ones(4)]]


def new_entries(seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(5, 3, generator=generator), torch.randn(7, generator=generator)]


def function_of(function, **options):
    torch._dynamo.reset()
    return DirectCalls(function, options, {})


def test_every_call_computes_with_its_own_entries_and_changes_the_state():
    direct, here, there = function_of(step), new_state(), new_state()
    for seed in range(4):
        with torch.no_grad():
            found, expected = direct(new_entries(seed), here), step(new_entries(seed), there)
        assert direct.is_direct
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other)
    assert float(here[0][1]) == 4
    torch.testing.assert_close(here[0][0], there[0][0])


def test_the_calls_after_the_first_do_not_go_through_torch(monkeypatch):
    direct, state = function_of(step), new_state()
    with torch.no_grad():
        direct(new_entries(0), state)
        monkeypatch.setattr(direct, "_through_torch", None)
        direct(new_entries(1), state)
    assert float(state[0][1]) == 2


ELSEWHERE = torch.full((2,), 3.0)


def reads_elsewhere(entries, state):
    return (entries[0] * ELSEWHERE,)


def returns_an_entry(entries, state):
    state[0][0].add_(1)
    return entries[0] + 1, entries[1]


@pytest.mark.parametrize("function", [reads_elsewhere, returns_an_entry])
def test_what_the_kernels_alone_do_not_say_goes_through_torch(function):
    direct = function_of(function)
    for number in range(3):
        entries = [torch.full((2,), float(number)), torch.full((1,), float(number))]
        with torch.no_grad():
            found = direct(entries, [[torch.zeros(1)]])
            expected = function(entries, [[torch.zeros(1)]])
        assert [value.tolist() for value in found] == [value.tolist() for value in expected]
        assert not direct.is_direct
        assert direct._kernels is None, "what a call took is not kept, nor looked at again"


def returns_one_twice(entries, state):
    total = entries[0].sum()
    return total, entries[0] * 2, total


def test_a_result_may_be_returned_twice():
    direct = function_of(returns_one_twice)
    for number in (1.0, 2.0, 3.0):
        with torch.no_grad():
            total, doubled, again = direct([torch.full((2,), number)], [])
        assert float(total) == float(again) == 2 * number
        assert doubled.tolist() == [2 * number] * 2
    assert direct.is_direct


def test_a_torch_without_that_compiler_takes_its_own_way(monkeypatch):
    monkeypatch.setattr(direct_calls, "graph_compiler", lambda: None)
    direct, state = function_of(step), new_state()
    with torch.no_grad():
        for seed in range(2):
            direct(new_entries(seed), state)
    assert float(state[0][1]) == 2
    assert not direct.is_direct
