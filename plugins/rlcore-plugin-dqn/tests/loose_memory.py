"""A loose plugin file: action values behind the recurrent body of the toy model, in its plainest form."""

import copy

import torch
from pydantic import BaseModel
from rlcore_plugin_testing.toy_memory import ToyBody, ToyMemoryPart
from torch import nn

from rlcore import Component, hookimpl


class Values(ToyMemoryPart):
    def after(self, observation, state, first):
        return self.body(observation, state, first)[-1]


class Greedy:
    """Takes random actions of which the first half of the numbers is greedy."""

    writes = ()

    def __init__(self, values):
        self.values = values

    def initial_state(self, num_envs):
        return torch.zeros(num_envs, self.values.body.size, device=self.values.head.weight.device)

    def draw(self, steps, num_envs, generator):
        return torch.randint(-2, 2, (steps, num_envs), generator=generator, device=generator.device)

    def act(self, observation, noise, state, first):
        greedy, following = self.mode(observation, state, first)
        return torch.where(noise < 0, greedy, noise), greedy, following

    def describe(self, parameters, action):
        return {}

    def mode(self, observation, state, first):
        following = self.values.body.step(observation, state, first)
        return self.values.head(following).argmax(-1), following

    def refresh(self):
        pass


class MemoryModel(nn.Module):
    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config, context):
        super().__init__()
        spec = context.env_spec
        self.q_values = Values(ToyBody(spec.observation_space.shape[0], 5), int(spec.action_space.n))
        generator = torch.Generator().manual_seed(context.seed("weights"))
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.normal_(0, 0.5, generator=generator)
        self.target_q_values = copy.deepcopy(self.q_values).requires_grad_(False)
        self.policy = Greedy(self.q_values)

    def parts(self):
        return ("q_values", "target_q_values")


@hookimpl
def provide_components():
    return [Component("model", "values", MemoryModel)]
