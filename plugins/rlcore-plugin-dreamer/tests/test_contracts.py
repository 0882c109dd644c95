"""The contracts of the plugin, of the model, of the loss and of the optimizer."""

import pytest
import torch
from rlcore_plugin_testing.contracts import LossContract, ModelContract, OptimizerContract, PluginContract
from rlcore_plugin_testing.contracts.data import observations

from .sections import AROUND, MODEL, NUMBERS, PIXELS

KEYS = {key: value for key, value in MODEL.items() if key != "use"}
LOSS = {"imagination": 3}
SAMPLED = "the state of the policy holds a sample of the latents and the action that was taken: test_policy.py"


class TestPlugin(PluginContract):
    plugin = "dreamer"


class DreamerContract(ModelContract):
    """The parts see tokens or features, and not observations."""

    use = "dreamer"
    config = KEYS

    def called(self, model, name):
        return None

    def behaviour(self, component, context):
        """Return what each part makes of the state after an observation."""
        seen = observations(context.env_spec, 5)
        rssm = component.rssm
        with torch.no_grad():
            tokens = component.encoder(seen).unsqueeze(0)
            action = torch.zeros(1, 5, component.actions.inputs)
            first = torch.ones(1, 5, 1, dtype=torch.bool)
            uniform = torch.full((1, 5, rssm.latents), 0.5)
            found = rssm.observe(tokens, action, first, rssm.initial(5), uniform)
            features = found.latent.features()
            heads = ("reward", "continuation", "actor", "critic", "target_critic")
            return {
                "posterior": found.posterior,
                "prior": found.prior,
                "decoder": component.decoder(*found.latent),
                **{name: getattr(component, name)(features) for name in heads},
            }

    def test_weights_follow_from_the_seed_of_the_run(self):
        """The last weights of rewards and values are zeros, whatever the seed."""
        models = [self.make(self.bench(around={"run": run})) for run in RUNS]
        weights = [dict(model.named_parameters()) for model in models]
        matrices = {name for name, value in weights[0].items() if value.ndim > 1 and value.any()}
        equal = {name for name in matrices if torch.equal(weights[0][name], weights[1][name])}
        zeros = {name for name, value in weights[0].items() if value.ndim > 1} - matrices
        assert not equal
        biases = {"rssm.mix.bias", "rssm.gates.bias", "decoder.of_deter.bias"}
        assert zeros - biases == {"reward.out.weight", "critic.out.weight", "target_critic.out.weight"}

    def test_critic_gives_one_value_per_observation(self):
        context = self.bench()
        model = self.make(context)
        logits = self.behaviour(model, context)["critic"]
        assert logits.shape == (1, 5, len(model.bins))

    @pytest.mark.skip(reason=SAMPLED)
    def test_states_are_one_tensor_of_floats(self):
        """With act and with mode the next states differ."""

    @pytest.mark.skip(reason="the probabilities are of imagined actions: test_exactness.py")
    def test_log_probabilities_are_those_of_the_actor(self):
        """The policy describes nothing."""

    @pytest.mark.skip(reason="the gradients of imagined actions are in test_exactness.py")
    def test_gradients_reach_every_weight_of_the_actor(self):
        """The actor sees features."""

    def _check_mode(self, model, policy, seen, after):
        """Compare with another policy over the same weights."""
        policy.refresh()
        other = type(model.policy)(model.encoder, model.rssm, model.actor, model.actions)
        states, first = other.initial_state(len(seen)), torch.ones(len(seen), dtype=torch.bool)
        with torch.inference_mode():
            assert torch.equal(policy.mode(seen), other.mode(seen, states, first)[0]), f"stale after {after}"


RUNS = [{"name": "toy", "seed": seed, "total_frames": 160, "device": "cpu"} for seed in (1, 2)]


class TestModel(DreamerContract):
    around = AROUND


class TestModelOfNumbers(DreamerContract):
    around = NUMBERS


class TestModelOfPixels(DreamerContract):
    config = {**KEYS, "blocks": 2}
    around = PIXELS


class TestLoss(LossContract):
    use = "dreamer"
    config = LOSS
    around = AROUND


class TestLossOfNumbers(LossContract):
    use = "dreamer"
    config = LOSS
    around = NUMBERS


class TestLossOfPixels(LossContract):
    use = "dreamer"
    config = LOSS
    around = PIXELS


class TestLaProp(OptimizerContract):
    use = "dreamer:laprop"
    config = {"lr": 0.01, "warmup": 2}
