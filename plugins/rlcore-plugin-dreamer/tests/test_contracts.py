"""The contracts of the plugin, of the model, of the loss and of the optimizer."""

import torch
from rlcore_plugin_testing.contracts import LossContract, OptimizerContract, PluginContract, WorldModelContract
from rlcore_plugin_testing.contracts.data import observations

from .sections import AROUND, MODEL, NUMBERS, PIXELS

KEYS = {key: value for key, value in MODEL.items() if key != "use"}
LOSS = {"imagination": 3}


class TestPlugin(PluginContract):
    plugin = "dreamer"


class DreamerContract(WorldModelContract):
    """The parts see tokens or features, and not observations."""

    use = "dreamer"
    config = KEYS

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
            state = component.policy.initial_state(5)
            heads = ("reward", "continuation", "actor", "critic", "target_critic")
            return {
                "posterior": found.posterior,
                "prior": rssm.prior(found.latent.deter),
                "decoder": component.decoder(*found.latent),
                "mode": component.policy.mode(seen, state, first[0, :, 0]),
                **{name: getattr(component, name)(features) for name in heads},
            }


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
