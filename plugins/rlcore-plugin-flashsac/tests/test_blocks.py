"""The networks against plain NumPy: one copy of two, at weights that are none of the beginning."""

import numpy as np
import pytest
import torch
from rlcore_plugin_flashsac.batch import Statistics
from rlcore_plugin_flashsac.blocks import BatchedNetwork, Shape
from rlcore_plugin_sac.critics import frozen, whole

SAMPLES, INPUTS, OUTPUTS = 9, 3, 4


def network(block, norm, last_norm=False):
    generator = torch.Generator().manual_seed(0)
    made = BatchedNetwork(2, INPUTS, OUTPUTS, Shape(block, 1, 5, 2, norm, 0.1, last_norm, 3.0), generator)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return made


def inputs():
    return torch.randn(SAMPLES, INPUTS, generator=torch.Generator().manual_seed(1)) * 2 + 1


def numbers(layer):
    """Return the parameters of the second copy by name."""
    return {name: parameter[1].detach().numpy() for name, parameter in layer.named_parameters(recurse=False)}


def mapped(layer, values):
    parameters = numbers(layer)
    return values @ parameters["weight"] + parameters.get("bias", 0.0)


def batch_normed(layer, values):
    parameters = numbers(layer)
    return (values - values.mean(0)) / np.sqrt(values.var(0) + 1e-5) * parameters["scale"] + parameters["shift"]


def layer_normed(layer, values):
    parameters = numbers(layer)
    centred = values - values.mean(1, keepdims=True)
    return centred / np.sqrt(values.var(1, keepdims=True) + 1e-5) * parameters["scale"] + parameters["shift"]


def unit(values):
    return values / np.sqrt((values**2).sum(-1, keepdims=True))


def relu(values):
    return np.maximum(values, 0)


def outputs(made, statistics=Statistics.BATCH):
    with torch.no_grad():
        return made(inputs().expand(2, -1, -1), whole, statistics)[1].numpy()


def test_an_inverted_block_is_that_of_flashsac():
    made = network("inverted", "batch", last_norm=True)
    block = made.blocks[0]
    hidden = mapped(made.entry.map, batch_normed(made.entry.norm, inputs().numpy()))
    inner = relu(batch_normed(block.widen.norm, mapped(block.widen.map, hidden)))
    hidden = hidden + relu(batch_normed(block.narrow.norm, mapped(block.narrow.map, inner)))
    hidden = hidden / np.sqrt((hidden**2).mean(-1, keepdims=True) + 1e-6) * numbers(made.last_norm)["scale"]
    np.testing.assert_allclose(outputs(made), mapped(made.head, hidden), atol=2e-5)


def test_a_residual_block_with_layer_norm_is_that_of_bronet():
    made = network("residual", "layer")
    block = made.blocks[0]
    hidden = relu(layer_normed(made.entry.map.norm, mapped(made.entry.map.map, inputs().numpy())))
    inner = relu(layer_normed(block.widen.norm, mapped(block.widen.map, hidden)))
    hidden = hidden + layer_normed(block.narrow.norm, mapped(block.narrow.map, inner))
    np.testing.assert_allclose(outputs(made), mapped(made.head, hidden), atol=2e-5)


def test_plain_layers_are_those_of_xqc():
    made = network("plain", "batch")
    hidden = batch_normed(made.entry.norm, inputs().numpy())
    for layer in (made.entry.map, made.blocks[0]):
        hidden = relu(batch_normed(layer.norm, mapped(layer.map, hidden)))
    np.testing.assert_allclose(outputs(made), mapped(made.head, hidden), atol=2e-5)


def test_a_spherical_block_is_that_of_simbav2():
    made = network("spherical", "none")
    entry, block = made.entry, made.blocks[0]
    shifted = unit(np.concatenate([inputs().numpy(), np.full((SAMPLES, 1), 3.0)], 1))
    hidden = unit(mapped(entry.map, shifted) * numbers(entry.scaler)["scale"])
    inner = relu(mapped(block.widen, hidden) * numbers(block.scaler)["scale"])
    goal = unit(mapped(block.narrow, inner))
    pace = numbers(block.pace)["scale"] * (1 / 2) / (1 / np.sqrt(5))
    hidden = unit(hidden + pace * (goal - hidden))
    wide = mapped(made.wide_head, hidden) * numbers(made.scaler)["scale"]
    np.testing.assert_allclose(outputs(made), mapped(made.head, wide), atol=2e-5)


def test_statistics_of_the_batch_move_the_running_ones_where_they_are_to():
    made = network("plain", "batch")
    norm = made.entry.norm
    outputs(made)
    assert not norm.running_mean.any(), "BATCH moved them"
    outputs(made, Statistics.MOVED)
    np.testing.assert_allclose(norm.running_mean[1, 0], 0.1 * inputs().numpy().mean(0), rtol=1e-5)
    np.testing.assert_allclose(norm.running_var[1, 0], 0.9 + 0.1 * inputs().numpy().var(0, ddof=1), rtol=1e-4)


def test_running_statistics_normalise_each_sample_for_itself():
    made = network("inverted", "batch")
    outputs(made, Statistics.MOVED)
    with torch.no_grad():
        alone = made(inputs()[:1].expand(2, -1, -1), whole, Statistics.BATCH)
    np.testing.assert_allclose(alone[1], outputs(made, Statistics.RUNNING)[:1], atol=1e-6)


@pytest.mark.parametrize(("block", "norm"), [("inverted", "batch"), ("residual", "layer"), ("spherical", "none")])
def test_frozen_weights_get_no_gradient_and_inputs_do(block, norm):
    made, samples = network(block, norm), inputs().requires_grad_()
    made(samples.expand(2, -1, -1), frozen, Statistics.RUNNING).sum().backward()
    assert samples.grad.any()
    assert all(parameter.grad is None for parameter in made.parameters())


def test_the_formula_of_the_compiler_is_the_kernel(monkeypatch):
    made = network("inverted", "batch")
    eager = outputs(made)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    np.testing.assert_allclose(outputs(made), eager, atol=1e-5)
