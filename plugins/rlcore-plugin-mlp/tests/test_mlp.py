"""The mlp model: the contract of models for every kind of action space, and its networks."""

import pytest
import torch

from rlcore.errors import ConfigError
from rlcore.testing import make_run
from rlcore.testing.contracts import ModelContract, PluginContract


class TestPlugin(PluginContract):
    plugin = "mlp"


class TestBoundedActions(ModelContract):
    use = "mlp"
    around = {"env": {"use": "testing:toy", "actions": "bounded"}}


class TestUnboundedActions(ModelContract):
    use = "mlp"
    config = {"hidden": [16], "activation": "relu", "initialisation": "orthogonal"}


class TestDiscreteActions(ModelContract):
    use = "mlp"
    config = {"parts": ["actor", "critic", "q_values"], "hidden": [8, 8, 8], "activation": "silu"}
    around = {"env": {"use": "testing:toy", "actions": "discrete"}}

    def test_q_values_are_one_per_action(self):
        model = self.make(self.bench())
        assert model.q_values(torch.zeros(5, 3)).shape == (5, 3)


class TestLinearModel(ModelContract):
    use = "mlp"
    config = {"hidden": []}


class TestNetworks(ModelContract):
    use = "mlp"

    def test_the_step_without_modules_equals_the_modules(self):
        model = self.make(self.bench())
        seen = torch.randn(7, 3)
        torch.testing.assert_close(model.critic.raw()(seen), model.critic(seen))

    def test_actor_and_critic_share_no_weights(self):
        model = self.make(self.bench())
        shared = {id(p) for p in model.actor.parameters()} & {id(p) for p in model.critic.parameters()}
        assert not shared

    def test_the_first_policy_is_broad(self):
        model = self.make(self.bench(), initialisation="orthogonal")
        parameters = model.actor(torch.randn(100, 3))
        scale = torch.nn.functional.softplus(parameters[:, 1])
        assert torch.allclose(scale, torch.ones(100), atol=0.05)

    def test_orthogonal_weights_are_orthogonal(self):
        model = self.make(self.bench(), initialisation="orthogonal", hidden=[16, 16])
        weight = model.critic.layers[1].weight
        torch.testing.assert_close(weight @ weight.T, 2 * torch.eye(16), atol=1e-4, rtol=0)

    def test_parts_that_are_not_asked_for_are_not_built(self):
        model = self.make(self.bench(), parts=["critic"])
        assert model.parts() == ("critic",)
        assert not hasattr(model, "policy")


def test_a_loss_that_needs_another_part_is_refused():
    with pytest.raises(ConfigError, match="critic"):
        make_run(sections={"model": {"use": "mlp", "parts": ["actor"]}})


def test_q_values_need_discrete_actions():
    with pytest.raises(ConfigError, match="discrete"):
        make_run(sections={"model": {"use": "mlp", "parts": ["actor", "critic", "q_values"]}})
