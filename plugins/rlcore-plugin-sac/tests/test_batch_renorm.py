"""Batch renormalisation: against torch's batch normalisation, against the paper's formulas, and in a compiled graph."""

import shutil

import pytest
import torch
from rlcore_plugin_sac.batch_renorm import BatchRenorm
from torch import nn

COPIES, SAMPLES, FEATURES = 3, 16, 4


def data(*shape, seed=0):
    return 1.5 * torch.randn(shape, generator=torch.Generator().manual_seed(seed)) + 0.7


def randomised(norm, seed=1):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        norm.scale.uniform_(0.5, 2, generator=generator)
        norm.shift.uniform_(-1, 1, generator=generator)
        norm.running_mean.uniform_(-1, 1, generator=generator)
        norm.running_var.uniform_(0.5, 2, generator=generator)
    return norm


def reference(norm):
    """Return torch's batch normalisation with the same weights and statistics."""
    plain = nn.BatchNorm1d(FEATURES, eps=1e-3, momentum=0.01)
    names = {"scale": "weight", "shift": "bias", "running_mean": "running_mean", "running_var": "running_var"}
    plain.load_state_dict({names[name]: v for name, v in norm.state_dict().items() if name in names}, strict=False)
    return plain


def test_during_the_warm_up_it_is_batch_normalisation():
    """Outputs, gradients and running statistics, and the same again by running statistics."""
    norm = randomised(BatchRenorm(FEATURES))
    plain = reference(norm)
    for seed in (2, 3):
        inputs = data(SAMPLES, FEATURES, seed=seed).requires_grad_()
        others = inputs.detach().clone().requires_grad_()
        torch.testing.assert_close(norm(inputs, update=True), plain(others))
        (norm(inputs, update=True) ** 3).sum().backward()
        (plain(others) ** 3).sum().backward()
        torch.testing.assert_close(inputs.grad, others.grad, rtol=1e-4, atol=1e-4)
    for name in ("running_mean", "running_var"):
        torch.testing.assert_close(getattr(norm, name), getattr(plain, name))
    plain.eval()
    inputs = data(5, FEATURES, seed=4)
    torch.testing.assert_close(norm(inputs), plain(inputs))
    scale, shift = norm.affine()
    torch.testing.assert_close(inputs * scale + shift, plain(inputs))


@pytest.mark.parametrize("copies", [None, COPIES])
def test_a_single_sample_is_normalised_by_the_running_statistics(copies):
    """It has no deviation: its own statistics would make a constant of it."""
    norm = BatchRenorm(FEATURES, copies)
    inputs = data(*([] if copies is None else [copies]), 1, FEATURES)
    expected, before = norm(inputs), norm.running_mean.clone()
    assert torch.equal(norm(inputs, update=True), expected)
    assert torch.equal(norm.running_mean, before)
    assert norm.updates == 0


def test_after_the_warm_up_it_is_corrected_to_the_running_statistics():
    """Where nothing is clipped the value is that of the running statistics; the gradient is still of the batch's."""
    norm = randomised(BatchRenorm(FEATURES, warmup=0))
    inputs = data(SAMPLES, FEATURES).requires_grad_()
    by_running = norm(inputs)
    found = norm(inputs, update=True)
    torch.testing.assert_close(found, by_running)
    assert not torch.allclose(norm(inputs), by_running), "the statistics moved"
    (gradient,) = torch.autograd.grad((found**3).sum(), inputs)
    assert gradient.sum(0).abs().max() < 1e-3, "a shift of the whole batch changes nothing"


@pytest.mark.parametrize("sign", [1, -1])
def test_the_correction_is_clipped(sign):
    norm = BatchRenorm(1, warmup=0)
    inputs = sign * 100 * data(SAMPLES, 1)
    deviation, mean = (inputs.var(0, correction=0) + 1e-3).sqrt(), inputs.mean(0)
    torch.testing.assert_close(norm(inputs, update=True), (inputs - mean) / deviation * 3 + sign * 5)
    narrow = (inputs - mean) / deviation / 100
    deviation = (narrow.var(0, correction=0) + 1e-3).sqrt()
    torch.testing.assert_close(BatchRenorm(1, warmup=0)(narrow, update=True), narrow / deviation / 3)


def test_each_copy_has_statistics_and_weights_of_its_own():
    together = randomised(BatchRenorm(FEATURES, COPIES))
    apart = [BatchRenorm(FEATURES) for _ in range(COPIES)]
    for index, norm in enumerate(apart):
        state = {n: v[index, 0] if v.ndim else v for n, v in together.state_dict().items()}
        norm.load_state_dict({name: value.clone() for name, value in state.items()})
    inputs = data(COPIES, SAMPLES, FEATURES)
    for update in (True, True, False):
        expected = torch.stack([norm(each, update) for norm, each in zip(apart, inputs, strict=True)])
        torch.testing.assert_close(together(inputs, update), expected)
    assert int(together.updates) == 2


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_it_compiles_into_one_graph_that_moves_the_statistics():
    """Also over the end of the warm-up, whose test is part of the graph, and with buffers handed in."""
    eager, compiled = (randomised(BatchRenorm(FEATURES, COPIES, warmup=2)) for _ in range(2))

    def called(parameters, buffers, inputs):
        def total(values):
            moved = {name: buffer.clone() for name, buffer in buffers.items()}
            result = torch.func.functional_call(compiled, (values, moved), (inputs, True))
            return (result**3).sum(), moved

        gradients, moved = torch.func.grad(total, has_aux=True)(parameters)
        for name, buffer in buffers.items():
            buffer.copy_(moved[name])
        return gradients

    function = torch.compile(called, fullgraph=True)
    parameters = {name: value.detach() for name, value in compiled.named_parameters()}
    for seed in range(4):
        inputs = data(COPIES, SAMPLES, FEATURES, seed=seed)
        gradients = function(parameters, dict(compiled.named_buffers()), inputs)
        eager.zero_grad()
        (eager(inputs, True) ** 3).sum().backward()
        for name, value in eager.named_parameters():
            torch.testing.assert_close(gradients[name], value.grad, rtol=1e-4, atol=1e-3)
    for name, buffer in eager.named_buffers():
        torch.testing.assert_close(dict(compiled.named_buffers())[name], buffer)
