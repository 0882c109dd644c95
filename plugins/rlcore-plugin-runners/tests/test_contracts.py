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


class TestValueNetwork(ModelContract):
    use = "runners:value-network"
    config = {"network": NETWORK}
