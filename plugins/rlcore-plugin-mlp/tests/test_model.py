"""The mlp model: its networks, and the parts that it has."""

import pytest
import torch

from rlcore.errors import ConfigError
from rlcore.testing import make_run
from rlcore.testing.contracts import ModelContract

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
