"""gSDE of a stochastic actor: one matrix of noise for several steps, and the densities that follow from it."""

import itertools

import pytest
import torch
from pydantic import ValidationError
from rlcore_plugin_testing.contracts import ModelContract

AROUND = {"env": {"use": "testing:toy", "actions": "bounded"}}
ENVS = 4000


def model_of(**config):
    given = {"hidden": [8], "random_frames": 0, "sde": True, "sde_log_std": -0.5, **config}
    return ModelContract.of("sac:actor-critic", given).make(ModelContract.of("testing:toy", around=AROUND).bench())


def seen(count):
    return torch.randn(1, 3, generator=torch.Generator().manual_seed(1)).expand(count, 3)


@torch.no_grad()
def test_actions_before_squashing_have_the_mean_and_the_scale_of_the_definition():
    model = model_of()
    noise = model.policy.draw(1, ENVS, torch.Generator().manual_seed(2))[0]
    action, _ = model.policy.act(seen(ENVS), noise)
    inner = model.actor.distribution.unsquash(action).double()
    hidden, last = model.actor.network.layers
    latent = hidden(seen(1)).relu().double()
    scale = (latent.square() @ (2 * model.actor.exploration.log_std).exp().double() + 1e-6).sqrt()
    torch.testing.assert_close(inner.mean(0), last(latent.float())[0].double(), atol=0.05, rtol=0)
    torch.testing.assert_close(inner.std(0), scale[0], atol=0.05, rtol=0)
    with torch.enable_grad():
        unit, log_prob = model.actor.rsample(seen(1), torch.zeros(1, 2))
    expected = torch.distributions.Normal(torch.zeros(1, 2).double(), scale).log_prob(torch.zeros(1, 2))
    slope = (1 - unit.double().square()).log()
    torch.testing.assert_close(log_prob.double(), (expected - slope).sum(-1, keepdim=True), atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_a_matrix_stays_for_so_many_steps():
    policy = model_of(sde_every=3).policy
    noise = policy.draw(7, 2, torch.Generator().manual_seed(0))
    actions = [policy.act(seen(2), row)[0] for row in noise]
    alike = [torch.equal(one, other) for one, other in itertools.pairwise(actions)]
    assert alike == [True, True, False, True, True, False]


def test_the_scales_train_the_layers_below_too():
    model = model_of()
    model.actor(seen(3)).chunk(2, -1)[1].sum().backward()
    assert model.actor.exploration.log_std.grad.any()
    assert model.actor.network.layers[0].weight.grad.any()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"sde": False, "sde_every": 2}, "without sde = true"),
        ({"actor": "deterministic", "sde": True}, "count for nothing with a deterministic actor"),
    ],
)
def test_keys_that_count_for_nothing_are_refused(config, message):
    with pytest.raises(ValidationError, match=message):
        ModelContract.of("sac:actor-critic").provided().schema().model_validate(config)


def test_a_model_with_a_memory_refuses_it():
    with pytest.raises(ValidationError, match="a model with a memory explores without it"):
        ModelContract.of("sac:recurrent-actor-critic").provided().schema().model_validate({"sde": True})


@pytest.mark.parametrize("sde", [False, True])
def test_the_parts_are_in_the_order_by_which_optimizers_go(sde):
    model = model_of(**({} if sde else {"sde": False, "sde_log_std": -3.0}))
    assert [name for name, _ in model.named_children()] == ["critics", "target_critics", "actor", "temperature"]
