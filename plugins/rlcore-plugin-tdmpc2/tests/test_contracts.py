"""The contracts of the plugin, of the loss and of the model."""

import torch
from rlcore_plugin_testing.contracts import LossContract, PluginContract, WorldModelContract
from rlcore_plugin_testing.contracts.data import observations

from .sections import AROUND, MODEL


class TestPlugin(PluginContract):
    plugin = "tdmpc2"


class TDMPC2Contract(WorldModelContract):
    """The state is that of the planner: no part remembers anything, and the policy acts without a part `actor`."""

    use = "tdmpc2"
    around = AROUND

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


class TestModel(TDMPC2Contract):
    config = {key: value for key, value in MODEL.items() if key != "use"}


class TestModelThatBeginsAtRandom(TDMPC2Contract):
    config = {**TestModel.config, "random_frames": 10, "prior_samples": 0, "dropout": 0.0}


class TestModelOfOneCritic(TDMPC2Contract):
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
