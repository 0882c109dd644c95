"""gSDE: noise that is one function of the observation for several steps, as Raffin et al. (2021) define it."""

import pytest
import torch
from pydantic import ValidationError
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.contracts import ModelContract

from rlcore.errors import ConfigError

STEPS, ENVS = 12, 3


def model_of(actions="unbounded", **config):
    around = {"env": {"use": "testing:toy", "actions": actions}}
    case = ModelContract.of("mlp", {"hidden": [8], "sde": True, "log_std": -0.5, **config})
    return case.make(ModelContract.of("mlp", around=around).bench())


def observations(count=ENVS):
    return torch.randn(count, 3, generator=torch.Generator().manual_seed(1))


def by_definition(model, observation):
    """Return the latent, the mean and the scale of the noise, in double precision."""
    *hidden, last = model.actor.network.layers
    latent = observation
    for layer in hidden:
        latent = layer(latent).tanh()
    deviations = model.actor.exploration.log_std.exp().double()
    scale = (latent.double().square() @ deviations.square() + 1e-6).sqrt()
    return latent.double(), last(latent).double(), scale


@pytest.mark.parametrize("every", [1, 4, 5, 0])
def test_a_matrix_is_drawn_every_so_many_steps_and_for_each_env(every):
    policy = model_of(sde_every=every).policy
    noise = policy.draw(STEPS, ENVS, torch.Generator().manual_seed(0))
    assert noise.shape == (STEPS, ENVS, 8)
    alike = [bool((noise[time] == noise[time - 1]).all()) for time in range(1, STEPS)]
    assert alike == [every == 0 or time % every != 0 for time in range(1, STEPS)]
    assert not (noise[0, 0] == noise[0, 1]).any()


@torch.no_grad()
def test_the_noise_is_the_latent_times_the_matrix():
    model = model_of()
    noise = model.policy.draw(1, ENVS, torch.Generator().manual_seed(2))[0]
    action, _ = model.policy.act(observations(), noise)
    latent, mean, _ = by_definition(model, observations())
    matrix = noise.reshape(ENVS, 8, -1).double() * model.actor.exploration.log_std.exp().double()
    expected = mean + torch.einsum("el,ela->ea", latent, matrix)
    torch.testing.assert_close(action.double(), expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_an_action_has_the_log_probability_of_the_definition():
    model = model_of()
    noise = model.policy.draw(1, ENVS, torch.Generator().manual_seed(2))[0]
    action, parameters = model.policy.act(observations(), noise)
    _, mean, scale = by_definition(model, observations())
    expected = torch.distributions.Normal(mean, scale).log_prob(action.double()).sum(-1, keepdim=True)
    found = model.policy.describe(parameters, action)["sample_log_prob"]
    torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_actions_of_many_matrices_have_the_mean_and_the_scale_of_the_definition():
    model, count = model_of(), 40_000
    noise = model.policy.draw(1, count, torch.Generator().manual_seed(2))[0]
    action, _ = model.policy.act(observations(1).expand(count, 3), noise)
    _, mean, scale = by_definition(model, observations(1))
    torch.testing.assert_close(action.double().mean(0), mean[0], atol=0.03, rtol=0)
    torch.testing.assert_close(action.double().std(0), scale[0], atol=0.03, rtol=0)


def test_the_scales_learn_and_leave_the_layers_below_alone():
    model = model_of()
    model.actor(observations()).chunk(2, -1)[1].sum().backward()
    assert model.actor.exploration.log_std.grad.abs().sum() > 0
    assert not any(parameter.grad.any() for parameter in model.actor.network.parameters())


def test_evaluations_have_no_noise():
    model = model_of("bounded")
    with torch.no_grad():
        mode = model.actor.distribution.mode(model.actor(observations()))
        assert torch.equal(model.policy.mode(observations()), mode)


def test_actions_without_a_deviation_are_refused():
    with pytest.raises(ConfigError, match="have no standard deviation"):
        model_of("discrete", log_std=None)


def test_keys_that_count_for_nothing_are_refused():
    schema = ModelContract.of("mlp").provided().schema()
    with pytest.raises(ValidationError, match="sde_every counts for nothing"):
        schema.model_validate({"sde_every": 4})
    with pytest.raises(ValidationError, match="critic_hidden counts for nothing"):
        schema.model_validate({"parts": ["actor"], "critic_hidden": [4]})


def test_policy_and_values_have_their_own_sizes():
    config = {"use": "mlp", "hidden": [7], "actor_hidden": [5, 4], "critic_hidden": []}
    run = make_run(sections={"model": config, "loss": {"use": "ppo"}, "estimator": {"use": "gae"}})
    model = run.trainer.parts.model
    assert [layer.out_features for layer in model.actor.network.layers][:-1] == [5, 4]
    assert [layer.out_features for layer in model.critic.layers] == [1]
    run.trainer.train()
