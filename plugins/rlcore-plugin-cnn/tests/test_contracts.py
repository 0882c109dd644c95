"""The contracts of the plugin, of its models, and of models of other plugins behind its bodies."""

from rlcore_plugin_testing.contracts import EnvContract, LossContract, ModelContract, PluginContract

SMALL = {"channels": [4], "kernels": [3], "strides": [2], "features": 8}
IMAGES = {"env": {"use": "testing:toy-pixels", "actions": "discrete"}}
BOUNDED = {"env": {"use": "testing:toy-pixels", "actions": "bounded", "frames": 1}}


class TestPlugin(PluginContract):
    plugin = "cnn"


class TestNatureCNN(ModelContract):
    use = "cnn:nature-cnn"
    config = SMALL
    around = IMAGES


class TestSeparateNatureCNN(ModelContract):
    use = "cnn:nature-cnn"
    config = {**SMALL, "share": False, "hidden": [8], "parts": ["actor", "critic", "q_values"]}
    around = IMAGES


class TestNatureCNNOfContinuousActions(ModelContract):
    use = "cnn:nature-cnn"
    config = {**SMALL, "log_std": 0.0}
    around = BOUNDED


class TestImpalaCNN(ModelContract):
    use = "cnn:impala-cnn"
    config = {"channels": [4, 4], "features": 8}
    around = IMAGES


class TestNatureCNNOfTheImageAmongLeaves(ModelContract):
    use = "cnn:nature-cnn"
    config = {**SMALL, "kernels": [2], "strides": [1]}
    around = {"env": {"use": "testing:toy-dict", "actions": "discrete"}}


class TestDuellingNoisyQNetworkOfImages(ModelContract):
    use = "dqn:q-network"
    config = {
        "encoder": "rlcore_plugin_cnn.bodies:NatureCNN",
        "encoder_kwargs": SMALL,
        "hidden": [8],
        "duelling": True,
        "noisy": True,
        "atoms": 5,
    }
    around = {**IMAGES, "loss": {"use": "dqn:c51"}, "estimator": []}


class TestPPOOfASharedBody(LossContract):
    use = "ppo"
    around = {**IMAGES, "model": {"use": "cnn:nature-cnn", **SMALL}, "estimator": {"use": "ppo:gae"}}


class TestToyPixels(EnvContract):
    use = "testing:toy-pixels"
    config = {"actions": "discrete"}
    terminates = {"ends": ["terminated"]}
    truncates = {"ends": ["truncated"]}
    around = {"model": {"use": "cnn:nature-cnn", **SMALL}}
