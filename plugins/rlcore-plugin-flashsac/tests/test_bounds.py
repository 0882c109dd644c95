"""Lengths of parameters: at the beginning, after a step, and in which order targets follow."""

import numpy as np
import pytest
import torch
from rlcore_plugin_flashsac.bounds import BoundedTargets, bounds_of, joint_to_root, keep, to_unit
from rlcore_plugin_testing import make_trainer

from .sections import REPLAY, around, paces


def test_weights_of_each_output_have_length_one():
    weight = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    (bounded,) = to_unit([weight])
    expected = weight.numpy() / np.sqrt((weight.numpy() ** 2).sum(1, keepdims=True))
    np.testing.assert_allclose(bounded, expected, rtol=1e-6)


def test_scale_and_shift_have_the_root_of_their_number_as_length():
    scale, shift = torch.randn(2, 2, 1, 9, generator=torch.Generator().manual_seed(0))
    bounded = joint_to_root([scale, shift])
    lengths = np.sqrt(sum((values.numpy() ** 2).sum(-1) for values in bounded))
    np.testing.assert_allclose(lengths, 3.0, rtol=1e-6)
    np.testing.assert_allclose(bounded[0] / bounded[1], scale / shift, rtol=1e-5)


def lengths(model):
    """Return the lengths of the weights of each output, of all linear maps of actor and critics."""
    maps = [module for part in (model.actor, model.critics) for module in part.modules() if hasattr(module, "bounds")]
    bounds = [bound for layer in maps for bound in layer.bounds()]
    weights = [bound.parameters[0] for bound in bounds if bound.within is to_unit]
    return torch.cat([weight.detach().norm(dim=1).flatten() for weight in weights])


@pytest.mark.parametrize(("bounded", "kept"), [("none", False), ("weights", True), ("all", True)])
def test_bounds_are_kept_after_the_updates_of_a_run(bounded, kept):
    trainer = make_trainer(sections=around(model={"bounded": bounded}, buffer=REPLAY, optimizer=paces()))
    if kept:
        torch.testing.assert_close(lengths(trainer.model), torch.ones_like(lengths(trainer.model)))
    trainer.train()
    assert torch.allclose(lengths(trainer.model), torch.ones(()), atol=1e-5) == kept
    norm = trainer.model.actor.network.last_norm.scale
    assert (abs(norm.norm().item() - 2) < 1e-5) == (bounded == "all"), "4 features: a length of 2"


def test_targets_follow_parameters_within_their_bounds():
    model = make_trainer(sections=around()).model
    critics, targets = model.critics, model.target_critics
    weights = targets.network.head.weight.clone()
    with torch.no_grad():
        critics.network.head.weight.mul_(3.0)
    BoundedTargets([(critics, targets)], bounds_of([critics], "all"), interval=1, tau=0.25).step()
    torch.testing.assert_close(targets.network.head.weight, weights, msg="they moved towards the longer weights")


def test_what_keeps_bounds_leaves_gradients_alone():
    model = make_trainer(sections=around()).model
    keep(model.bounds)
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.critics.parameters())
