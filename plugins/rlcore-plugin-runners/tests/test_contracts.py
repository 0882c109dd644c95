"""The contracts of the plugin, its hook and its models."""

import torch
from rlcore_plugin_testing.contracts import HookContract, ModelContract, PluginContract
from torch import nn


class Network(nn.Module):
    """Values of actions, or probabilities and a value."""

    def __init__(self, observation_shape, output_size, policy=False):
        super().__init__()
        self.policy = policy
        self.layers = nn.ModuleList(nn.Linear(*observation_shape, size) for size in (output_size, 1))

    def forward(self, observation, prev_action, prev_reward):
        outputs, value = (layer(observation) for layer in self.layers)
        return (torch.softmax(outputs, -1), value.squeeze(-1)) if self.policy else outputs


DISCRETE = {"use": "testing:toy", "actions": "discrete"}
NETWORK = f"{__file__}:Network"


class TestPlugin(PluginContract):
    plugin = "runners"


class TestDiagnostics(HookContract):
    use = "runners:diagnostics"
    transient = ("_counts", "_began", "_mark", "_evaluated")  # times, and what a row empties


class TestDiagnosticsOfEvaluations(HookContract):
    use = "runners:diagnostics"
    config = {"traj_window": 0, "log_interval_itrs": 2}
    transient = TestDiagnostics.transient


class TestPolicyNetwork(ModelContract):
    use = "runners:policy-network"
    config = {"network": NETWORK, "network_kwargs": {"policy": True}}
    around = {"env": DISCRETE}

    def test_gradients_reach_every_weight_of_the_actor(self):
        """Its network is that of the critic too: both together reach every weight."""
        model = self.make(self.bench())
        parameters, values = model.actor_and_critic(torch.rand(6, *model.actor.network.layers[0].weight.shape[1:]))
        (parameters[:, 0].sum() + values.sum()).backward()
        assert all(parameter.grad is not None for parameter in model.parameters())


class TestValueNetwork(ModelContract):
    use = "runners:value-network"
    config = {"network": NETWORK}
    around = {
        "env": DISCRETE,
        "loss": {"use": "dqn"},
        "estimator": None,
        "buffer": {"use": "rollout", "minibatch_size": 8},
    }
