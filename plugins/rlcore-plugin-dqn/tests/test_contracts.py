"""The contracts of the plugin, of the losses and of the Q-network; each key in one suite of its component."""

from rlcore_plugin_testing.contracts import LossContract, ModelContract, PluginContract

from .sections import AROUND, C51, CATEGORICAL, DISTRIBUTIONS, QR, QUANTILES, SEQUENCES, changed


class TestPlugin(PluginContract):
    plugin = "dqn"


class TestQNetwork(ModelContract):
    use = "dqn:q-network"
    config = {"hidden": [8, 8]}
    around = AROUND


class TestQuantileQNetwork(ModelContract):
    use = "dqn:q-network"
    config = QUANTILES
    around = QR


class TestRainbowQNetwork(ModelContract):
    use = "dqn:q-network"
    config = {**DISTRIBUTIONS, "hidden": [8, 6], "duelling": True, "noisy": True}
    around = C51


class TestMaskedDuellingQNetwork(ModelContract):
    use = "dqn:q-network"
    config = {"hidden": [8, 6], "duelling": True}
    around = {**AROUND, "env": {"use": "testing:toy-dict"}}


class TestRecurrentQNetwork(ModelContract):
    use = "dqn:recurrent-q-network"
    config = {"size": 6, "encoder_hidden": [5], "hidden": [4], "duelling": True}
    around = SEQUENCES


class TestMaskedGRUQNetwork(ModelContract):
    use = "dqn:recurrent-q-network"
    config = {"cell": "gru", "size": 6, "encoder_hidden": []}
    around = {**SEQUENCES, "env": {"use": "testing:toy-dict", "actions": "numbered"}}


class TestDQN(LossContract):
    use = "dqn"
    around = AROUND


class TestDQNWithMasks(LossContract):
    use = "dqn"
    config = {"double": True}
    around = {**AROUND, "env": {"use": "testing:toy-dict", "actions": "numbered"}}


class TestNoisyDoubleDQN(LossContract):
    use = "dqn"
    config = {"double": True, "error": "l2", "target_interval": 1, "target_tau": 0.01}
    around = changed(AROUND, noisy=True)


class TestDQNOfDistributions(LossContract):
    """The expected values of a categorical network are values too."""

    use = "dqn"
    around = CATEGORICAL


class TestC51(LossContract):
    use = "dqn:c51"
    around = C51


class TestQuantiles(LossContract):
    use = "dqn:qr-dqn"
    around = QR


class TestRainbow(LossContract):
    """Duelling, noisy, double, categorical; the other two parts are the buffer's."""

    use = "dqn:c51"
    config = {"double": True}
    around = changed(C51, duelling=True, noisy=True)


class TestNoisyDuellingQuantilesWithoutHuber(LossContract):
    use = "dqn:qr-dqn"
    config = {"double": True, "kappa": 0.0}
    around = changed(QR, duelling=True, noisy=True)


class TestR2D2WithMasks(LossContract):
    use = "dqn:r2d2"
    around = {
        **SEQUENCES,
        "env": {"use": "testing:toy-dict", "actions": "numbered"},
        "model": {"use": "dqn:recurrent-q-network", "size": 6},
    }


class TestPlainR2D2(LossContract):
    use = "dqn:r2d2"
    config = {"double": False, "rescale": False, "error": "smooth_l1"}
    around = SEQUENCES
