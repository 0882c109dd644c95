"""The contracts of the plugin, of the losses and of the Q-network."""

from rlcore.testing.contracts import LossContract, ModelContract, PluginContract

from .sections import AROUND, C51, CATEGORICAL, DISTRIBUTIONS


class TestPlugin(PluginContract):
    plugin = "dqn"


class TestQNetwork(ModelContract):
    use = "dqn:q-network"
    config = {"hidden": [8, 8]}
    around = AROUND


class TestCategoricalQNetwork(ModelContract):
    use = "dqn:q-network"
    config = DISTRIBUTIONS
    around = {**AROUND, "loss": {"use": "dqn:c51"}}


class TestDQN(LossContract):
    use = "dqn"
    around = AROUND


class TestDoubleDQN(LossContract):
    use = "dqn"
    config = {"double": True, "error": "l2", "target_interval": 1, "target_tau": 0.01}
    around = AROUND


class TestDQNOfDistributions(LossContract):
    """The expected values of a categorical network are values too."""

    use = "dqn"
    around = CATEGORICAL


class TestC51(LossContract):
    use = "dqn:c51"
    around = C51


class TestDoubleC51(LossContract):
    use = "dqn:c51"
    config = {"double": True}
    around = C51
