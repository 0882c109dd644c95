"""A loose plugin file: a loss that learns from transitions without an estimator, and an env that cannot be saved."""

import torch
from pydantic import BaseModel
from rlcore_plugin_testing.toy import ToyEnv
from torch import nn

from rlcore import Component, hookimpl


class TDLoss(nn.Module):
    requires = ("actor", "critic")

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config, context):
        super().__init__()
        self.actor, self.critic = context.model.actor, context.model.critic

    def forward(self, minibatch):
        observation = minibatch["observation"]
        with torch.no_grad():
            following = self.critic(minibatch["next", "observation"]) * ~minibatch["next", "terminated"]
        error = minibatch["next", "reward"] + 0.9 * following - self.critic(observation)
        log_prob = self.actor.distribution.log_prob(self.actor(observation), minibatch["action"])
        return {
            "loss_critic": error.square().mean(),
            "loss_actor": -(log_prob * error.detach()).mean(),
            "td_error": error.detach(),
        }


class SequenceTDLoss(TDLoss):
    """The same over the steps of sequences that are trained on."""

    burn_in = 0

    def forward(self, minibatch):
        steps = minibatch["collector", "mask"].squeeze(-1)
        keys = ("observation", "action", ("next", "observation"), ("next", "reward"), ("next", "terminated"))
        losses = super().forward({key: minibatch[key][steps] for key in keys})
        errors = torch.zeros_like(minibatch["next", "reward"])
        errors[steps] = losses["td_error"]
        return {**losses, "td_error": errors}


class ForgetfulEnv(ToyEnv):
    """A toy env of which a resume begins new episodes."""

    state_dict = property()


@hookimpl
def provide_components():
    return [
        Component("loss", "td", TDLoss),
        Component("loss", "sequence-td", SequenceTDLoss),
        Component("env", "forgetful", ForgetfulEnv),
    ]
