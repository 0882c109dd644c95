"""The mlp model: its networks, and the parts that it has."""

import pytest
import torch
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.contracts import ModelContract

from rlcore.errors import ConfigError

MLP = ModelContract.of("mlp")
Q_VALUES = ModelContract.of(
    "mlp", {"parts": ["actor", "critic", "q_values"]}, {"env": {"use": "testing:toy", "actions": "discrete"}}
)


def test_the_step_without_modules_equals_the_modules():
    model = MLP.make(MLP.bench())
    seen = torch.randn(7, 3)
    torch.testing.assert_close(model.critic.raw()(seen), model.critic(seen))


def test_actor_and_critic_share_no_weights():
    model = MLP.make(MLP.bench())
    shared = {id(p) for p in model.actor.parameters()} & {id(p) for p in model.critic.parameters()}
    assert not shared


def test_the_first_policy_is_broad():
    model = MLP.make(MLP.bench(), initialisation="orthogonal")
    parameters = model.actor(torch.randn(100, 3))
    scale = torch.nn.functional.softplus(parameters[:, 1])
    assert torch.allclose(scale, torch.ones(100), atol=0.05)


def test_orthogonal_weights_are_orthogonal():
    model = MLP.make(MLP.bench(), initialisation="orthogonal", hidden=[16, 16])
    weight = model.critic.layers[1].weight
    torch.testing.assert_close(weight @ weight.T, 2 * torch.eye(16), atol=1e-4, rtol=0)


def test_parts_that_are_not_asked_for_are_not_built():
    model = MLP.make(MLP.bench(), parts=["critic"])
    assert model.parts() == ("critic",)
    assert not hasattr(model, "policy")


def test_q_values_are_one_per_action():
    model = Q_VALUES.make(Q_VALUES.bench())
    assert model.q_values(torch.zeros(5, 3)).shape == (5, 3)


def test_a_loss_that_needs_another_part_is_refused():
    with pytest.raises(ConfigError, match="critic"):
        make_run(sections={"model": {"use": "mlp", "parts": ["actor"]}})


def test_q_values_need_discrete_actions():
    with pytest.raises(ConfigError, match="discrete"):
        make_run(sections={"model": {"use": "mlp", "parts": ["actor", "critic", "q_values"]}})


# a log standard deviation that does not depend on the observation


def test_log_std_is_one_parameter_per_action_of_every_observation():
    context = MLP.bench(around={"env": {"use": "testing:toy", "actions": "bounded"}})
    model = MLP.make(context, log_std=-0.5)
    parameters = model.actor(torch.randn(5, 3))
    assert torch.equal(parameters[:, 2:], torch.full((5, 2), -0.5))
    assert dict(model.actor.named_parameters())["log_std"].shape == (2,)
    assert model.actor.network.layers[-1].out_features == 2
    scale = model.actor.distribution._loc_scale(parameters)[1]
    torch.testing.assert_close(scale, torch.full((5, 2), -0.5).exp())


def test_log_std_is_trained_and_the_policy_follows_it():
    run = make_run(sections={"model": {"use": "mlp", "log_std": 0.25}, "loss": {"use": "ppo"}})
    run.trainer.train()
    actor = run.trainer.model.actor
    assert actor.log_std.item() != 0.25
    run.trainer.model.policy.refresh()
    _, outputs = run.trainer.model.policy.act(torch.zeros(2, 3), torch.zeros(2, 1))
    assert torch.equal(outputs[:, 1].detach(), actor.log_std.detach().expand(2))


def test_log_std_of_numbered_actions_is_refused():
    context = MLP.bench(around={"env": {"use": "testing:toy", "actions": "discrete"}})
    with pytest.raises(ConfigError, match=r"\[model\] log_std, sde: actions in Discrete\(.*have no standard deviation"):
        MLP.make(context, log_std=0.0)
