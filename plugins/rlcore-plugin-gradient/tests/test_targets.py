"""Target networks move when they are due, as far as they should, and go on after a resume."""

import copy

import pytest
import torch
from rlcore_plugin_gradient.targets import TargetUpdater
from torch import nn

from rlcore.errors import RlcoreError


def networks():
    torch.manual_seed(1)
    source = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    target = copy.deepcopy(source)
    with torch.no_grad():
        for parameter in source.parameters():
            parameter += 1.0
        source[1].running_mean += 5.0
    return source, target


def test_a_hard_update_copies_at_each_interval_and_not_before():
    source, target = networks()
    before = target[0].weight.clone()
    updater = TargetUpdater([(source, target)], interval=3)
    for _ in range(2):
        updater.step()
        assert torch.equal(target[0].weight, before)
    updater.step()
    assert torch.equal(target[0].weight, source[0].weight)
    with torch.no_grad():
        source[0].weight += 1.0
    updater.step()
    assert not torch.equal(target[0].weight, source[0].weight), "the interval begins again"


def test_a_soft_update_moves_a_part_of_the_way_at_every_step():
    source, target = networks()
    start = target[0].weight.clone()
    updater = TargetUpdater([(source, target)], interval=1, tau=0.1)
    updater.step()
    updater.step()
    torch.testing.assert_close(target[0].weight, source[0].weight - 0.9**2 * (source[0].weight - start))


def test_buffers_are_copied_whole():
    source, target = networks()
    TargetUpdater([(source, target)], interval=1, tau=0.1).step()
    assert torch.equal(target[1].running_mean, source[1].running_mean)


def test_targets_are_frozen_and_sources_are_not():
    source, target = networks()
    TargetUpdater([(source, target)])
    assert not any(parameter.requires_grad for parameter in target.parameters())
    assert all(parameter.requires_grad for parameter in source.parameters())


def test_the_place_in_the_interval_is_restored():
    source, target = networks()
    first = TargetUpdater([(source, target)], interval=3)
    first.step()
    first.step()
    second = TargetUpdater([(source, target)], interval=3)
    second.load_state_dict(first.state_dict())
    second.step()
    assert torch.equal(target[0].weight, source[0].weight)


def test_a_target_of_another_structure_is_refused():
    with pytest.raises(RlcoreError, match=r"Linear and Linear differ in weight"):
        TargetUpdater([(nn.Linear(3, 2), nn.Linear(4, 2))])


def test_tensors_that_loading_exchanged_are_the_ones_that_move():
    source, target = networks()
    updater = TargetUpdater([(source, target)], interval=1)
    other = {name: value + 2.0 for name, value in source.state_dict().items()}
    source.load_state_dict(other, assign=True)
    target.load_state_dict(copy.deepcopy(target.state_dict()), assign=True)
    updater.step()
    assert torch.equal(target[0].weight, other["0.weight"])
    assert torch.equal(target[1].running_mean, other["1.running_mean"])


def test_weights_that_two_layers_share_move_once():
    shared = nn.Linear(2, 2)
    source = nn.Sequential(shared, shared)
    target = copy.deepcopy(source)
    with torch.no_grad():
        source[0].weight += 1.0
    start = target[0].weight.clone()
    TargetUpdater([(source, target)], interval=1, tau=0.5).step()
    torch.testing.assert_close(target[0].weight, start + 0.5)
