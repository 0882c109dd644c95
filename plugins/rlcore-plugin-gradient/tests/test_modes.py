"""Which layers go into training mode while a loss is computed."""

import copy

import pytest
from rlcore_plugin_gradient.modes import in_training, trained_layers
from torch import nn


class Own(nn.Module):
    """Reads the mode itself."""

    def forward(self, inputs):
        return inputs * 2 if self.training else inputs


class Kept(nn.Sequential):
    """Leaves its norm in evaluation mode."""

    def train(self, mode=True):
        super().train(mode)
        self[1].eval()
        return self


@pytest.mark.parametrize(
    ("layer", "counts"),
    [
        (nn.Dropout(0.5), True),
        (nn.AlphaDropout(0.5), True),
        (nn.BatchNorm1d(2), True),
        (nn.InstanceNorm1d(2, track_running_stats=True), True),
        (nn.RReLU(), True),
        (nn.MultiheadAttention(2, 1, dropout=0.1), True),
        (nn.GRU(2, 2, 2, dropout=0.5), True),
        (Own(), True),
        (nn.GRU(2, 2), False),
        (nn.LayerNorm(2), False),
        (nn.Linear(2, 2), False),
    ],
)
def test_a_layer_counts_where_its_class_reads_the_mode(layer, counts):
    loss = nn.Sequential(nn.Linear(2, 2), layer).eval()
    loss.training = True
    assert (layer in trained_layers(loss)) is counts
    assert not any(module.training for module in loss[1].modules()), "they are as they were"


def test_what_is_in_training_mode_already_is_its_owner_s_matter():
    assert trained_layers(nn.Sequential(nn.Dropout())) == ()
    assert trained_layers(lambda minibatch: {}) == ()


def test_frozen_copies_and_what_a_network_leaves_in_evaluation_mode_stay():
    network = nn.Sequential(nn.Linear(2, 2), nn.Dropout()).eval()
    target = copy.deepcopy(network).requires_grad_(False)
    assert trained_layers(nn.ModuleList([network, target])) == (network[1],)
    assert trained_layers(nn.ModuleList([Kept(nn.Linear(2, 2), nn.BatchNorm1d(2)).eval()])) == ()


def test_layers_are_in_evaluation_mode_again_after_an_error():
    layer = nn.Dropout(0.5).eval()
    found = []
    layer.register_forward_pre_hook(lambda layer, given: found.append(layer.training))
    with pytest.raises(TypeError), in_training([layer]):
        layer("no tensor")
    assert found == [True]
    assert not layer.training
