"""The contracts of the plugin and of its models, with encoders, masks and every kind of action."""

from rlcore_plugin_testing.contracts import ModelContract, PluginContract

SMALL = {"size": 6, "encoder_hidden": [5]}
SEQUENCES = {"buffer": {"use": "rollout-sequences", "minibatch_size": 8, "sequence_length": 4}}


class TestPlugin(PluginContract):
    plugin = "recurrent"


class TestLSTM(ModelContract):
    use = "recurrent:lstm"
    config = SMALL
    around = SEQUENCES


class TestGRUOfDiscreteActions(ModelContract):
    use = "recurrent:gru"
    config = {**SMALL, "hidden": [4], "initialisation": "orthogonal", "parts": ["actor", "critic", "q_values"]}
    around = {**SEQUENCES, "env": {"use": "testing:toy", "actions": "discrete"}}


class TestLSTMForEachPart(ModelContract):
    use = "recurrent:lstm"
    config = {**SMALL, "shared": False, "log_std": 0.0}
    around = SEQUENCES


class TestGRUForEachPart(ModelContract):
    use = "recurrent:gru"
    config = {**SMALL, "shared": False, "layers": 2, "parts": ["critic", "actor", "q_values"]}
    around = {**SEQUENCES, "env": {"use": "testing:toy-dict"}}


class TestLSTMWithoutAnEntrance(ModelContract):
    use = "recurrent:lstm"
    config = {"size": 4, "encoder_hidden": [], "log_std": 0.0}
    around = SEQUENCES


class TestGRUOfDictsAndMasks(ModelContract):
    use = "recurrent:gru"
    config = {**SMALL, "encoder_hidden": []}
    around = {**SEQUENCES, "env": {"use": "testing:toy-dict"}}


class TestLSTMWithMaskedBits(ModelContract):
    use = "recurrent:lstm"
    config = SMALL
    around = {**SEQUENCES, "env": {"use": "testing:toy-dict", "actions": "bits"}}


class TestLSTMOfImages(ModelContract):
    use = "recurrent:lstm"
    config = {
        **SMALL,
        "encoder": "rlcore_plugin_cnn.bodies:NatureCNN",
        "encoder_kwargs": {"channels": [4], "kernels": [3], "strides": [2], "features": 8},
    }
    around = {**SEQUENCES, "env": {"use": "testing:toy-pixels", "actions": "discrete"}}
