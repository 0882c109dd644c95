"""The contracts of the plugin, of the loss and of the model."""

import pytest
import torch
from rlcore_plugin_testing.contracts import LossContract, ModelContract, PluginContract
from rlcore_plugin_testing.contracts.data import observations
from rlcore_plugin_testing.contracts.memory import beginning

from .sections import AROUND, MODEL


class TestPlugin(PluginContract):
    plugin = "tdmpc2"


class PlannerContract(ModelContract):
    """The state is that of the planner: no part remembers anything, and the policy acts without a part `actor`."""

    use = "tdmpc2"
    around = AROUND

    def called(self, model, name):
        return None

    def actor(self):
        context = self.bench()
        model = self.make(context)
        model.policy.refresh()
        return model, beginning(model.policy), context

    def behaviour(self, component, context):
        seen = observations(context.env_spec, 5)
        actions = torch.linspace(-1, 1, 10).view(5, 2)
        state = torch.linspace(-1, 1, 5 * 6).view(5, 6)
        with torch.no_grad():
            latent = component.encoder(seen)
            pair = torch.cat([latent, actions], -1)
            values = {name: getattr(component, name)(pair) for name in ("critics", "target_critics")}
            outputs = {name: getattr(component, name)(pair) for name in ("dynamics", "reward")}
            chosen = component.policy.mode(seen, state, torch.zeros(5, dtype=torch.bool))
            return {**values, **outputs, "prior": component.prior(latent), "mode": chosen}

    def test_weights_follow_from_the_seed_of_the_run(self):
        """All do but those of the last layers of rewards and values, which begin with zeros."""
        models = [
            self.make(self.bench(around={"run": {"name": "toy", "seed": seed, "total_frames": 64}})) for seed in (1, 2)
        ]
        parameters = [dict(model.named_parameters()) for model in models]
        weights = [name for name, value in parameters[0].items() if name.endswith("weight") and "norm" not in name]
        equal = {name for name in weights if torch.equal(parameters[0][name], parameters[1][name])}
        assert equal == {"reward.layers.2.weight", "critics.last.weight", "target_critics.last.weight"}
        assert all(bool((parameters[0][name] == 0).all()) for name in equal)

    def test_states_are_one_tensor_of_floats(self):
        """A plan depends on the noise, so that the one after `act` is not that after `mode`."""
        _, policy, context = self.remembering()
        seen, states = observations(context.env_spec, 6), torch.full((6, 6), 0.3)
        first = torch.tensor([0, 0, 0, 0, 0, 1], dtype=torch.bool)
        with torch.inference_mode():
            noise = policy.draw(1, 6, torch.Generator().manual_seed(1))[0]
            for following in (policy.act(seen, noise, states, first)[2], policy.mode(seen, states, first)[1]):
                assert (following.shape, following.dtype) == (policy.initial_state(6).shape, torch.float32)
        assert bool((states == 0.3).all())

    def test_what_was_seen_is_remembered(self):
        """The plan of the step before is where the next one begins."""
        model, policy, context = self.remembering()
        self.exercise(model, context)  # the values of all plans are equal in the beginning
        seen, none = observations(context.env_spec, 2, 6), torch.zeros(6, dtype=torch.bool)
        with torch.inference_mode():
            noise = policy.draw(2, 6, torch.Generator().manual_seed(1))
            if noise.shape[-1] != len(model.mode_noise):
                pytest.skip("the first actions are uniform")
            results = []
            for row in (0, 1):
                _, _, state = policy.act(seen[row], noise[0], policy.initial_state(6), none)
                results.append(policy.act(seen[0], noise[1], state, none))
        assert not torch.equal(results[0][0], results[1][0])

    def test_refresh_follows_the_weights(self):
        """The planner asks the parts themselves, also after loading."""
        model, _, context = self.actor()
        state = {name: value.clone() * 0.5 for name, value in model.state_dict().items()}
        before = self.behaviour(model, context)["mode"][0]
        model.load_state_dict(state, assign=True)
        model.policy.refresh()
        after = self.behaviour(model, context)["mode"][0]
        other = self.make(self.bench())
        other.load_state_dict(state)
        assert not torch.equal(before, after)
        assert torch.equal(after, self.behaviour(other, context)["mode"][0])

    def test_gradients_reach_every_weight_of_the_actor(self):
        """Every weight of the prior has one; the contract of the loss says so of the others."""
        model, _, context = self.actor()
        latent = model.encoder(observations(context.env_spec, 6)).detach()
        model.prior.sample(latent, torch.ones(6, 2)).log_prob.sum().backward()
        assert all(parameter.grad is not None for parameter in model.prior.parameters())

    def test_log_probabilities_are_those_of_the_actor(self):
        """The policy describes none: an action of a planner has no density that anyone knows."""
        model, policy, _ = self.actor()
        assert policy.describe(torch.zeros(1, 1, 2), torch.zeros(1, 1, 2)) == {}
        assert model.policy.writes == ()


class TestModel(PlannerContract):
    config = {key: value for key, value in MODEL.items() if key != "use"}


class TestModelThatBeginsAtRandom(PlannerContract):
    config = {**TestModel.config, "random_frames": 10, "prior_samples": 0, "dropout": 0.0}


class TestModelOfOneCritic(PlannerContract):
    config = {**TestModel.config, "critics": 1, "encoder_rate": 1.0, "iterations": None, "encoder_hidden": []}


class ScaleKept(LossContract):
    """Each call has the scale of the first, so that the losses of two calls can be compared."""

    use = "tdmpc2"
    around = AROUND

    def make(self, context, **changes):
        loss = super().make(context, **changes)
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():  # all values are zero in the beginning
            loss.target_critics.last.weight.normal_(generator=generator)
        forward = loss.forward

        def restoring(minibatch, names=None):
            kept = {name: buffer.clone() for name, buffer in loss.named_buffers()}
            result = forward(minibatch, names)
            for name, buffer in loss.named_buffers():
                buffer.copy_(kept[name])
            return result

        loss.forward = restoring
        return loss


class TestLoss(ScaleKept):
    config = {}


class TestLossWithoutDropout(ScaleKept):
    config = {"rho": 0.9, "entropy": 0.1, "target_interval": 2}
    around = {**AROUND, "model": {**MODEL, "dropout": 0.0, "gamma": 0.9}}
