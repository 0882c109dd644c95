"""The forward pass without modules follows the weights, wherever they go."""

import copy
import pickle

import pytest
import torch
from rlcore_plugin_mlp.network import ACTIVATIONS, MLP

SEEN = torch.linspace(-2, 2, 15).reshape(5, 3)


def network(activation="tanh"):
    return MLP([3, 8, 8, 2], activation, "torch", 1.0, torch.Generator().manual_seed(1))


def moved_in_place(net):
    with torch.no_grad():
        net.layers[1].weight.mul_(2)


def given_other_data(net):
    net.layers[1].bias.data = net.layers[1].bias.detach() + 1


def given_another_parameter(net):
    net.layers[2].weight = torch.nn.Parameter(net.layers[2].weight.detach() * 3)


def given_another_layer(net):
    net.layers[0] = torch.nn.Linear(3, 8)
    torch.nn.init.ones_(net.layers[0].bias)


def loaded(net):
    net.load_state_dict({name: value * 2 for name, value in net.state_dict().items()}, assign=True)


def parametrized(net):
    torch.nn.utils.parametrizations.weight_norm(net.layers[1])
    with torch.no_grad():
        net.layers[1].parametrizations.weight.original0.mul_(2)


@pytest.mark.parametrize(
    "change",
    [moved_in_place, given_other_data, given_another_parameter, given_another_layer, loaded, parametrized],
)
def test_it_follows_the_weights(change):
    net = network()
    before = net.raw()(SEEN)
    change(net)
    found = net.raw()(SEEN)
    torch.testing.assert_close(found, net(SEEN).detach())
    assert not torch.equal(found, before)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_a_copy_has_weights_of_its_own(copied):
    net = network()
    net.raw()
    other = copied(net)
    moved_in_place(other)
    torch.testing.assert_close(other.raw()(SEEN), other(SEEN).detach())
    torch.testing.assert_close(net.raw()(SEEN), net(SEEN).detach())
    assert not torch.equal(net.raw()(SEEN), other.raw()(SEEN))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_inputs_stay_as_they_are(activation):
    net, seen = network(activation), SEEN.clone()
    torch.testing.assert_close(net.raw()(seen), net(SEEN).detach())
    assert torch.equal(seen, SEEN)


def test_without_gradients_it_takes_what_a_hook_on_a_layer_returns():
    net = network()
    handle = net.layers[1].register_forward_hook(lambda module, inputs, outputs: outputs * 0)
    with torch.no_grad():
        assert torch.equal(net(SEEN), net.layers[2](torch.zeros(5, 8)))
        handle.remove()
        assert torch.equal(net(SEEN), net.raw()(SEEN))


def test_weights_that_are_handed_over_take_the_place_of_its_own():
    net = network()
    tensors = {name: value.detach() * 2 for name, value in net.named_parameters()}
    other = copy.deepcopy(net)
    other.load_state_dict(tensors)
    with torch.no_grad():
        torch.testing.assert_close(torch.func.functional_call(net, tensors, (SEEN,)), other(SEEN))
        torch.testing.assert_close(torch.func.vmap(net)(SEEN[:, None]), net(SEEN)[:, None])
