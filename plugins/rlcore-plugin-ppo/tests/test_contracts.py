"""The contracts of the plugin, of the losses and of the estimator."""

from rlcore_plugin_testing.contracts import GAEContract, HookContract, LossContract, PluginContract


class TestPlugin(PluginContract):
    plugin = "ppo"


class TestPPO(LossContract):
    use = "ppo"


class TestPPOWithEverything(LossContract):
    use = "ppo"
    config = {"normalize_advantage": True, "clip_value": True}


class TestPPOWithMLP(LossContract):
    use = "ppo"
    around = {
        "model": {"use": "mlp", "hidden": [8]},
        "env": {"use": "testing:toy", "actions": "bounded"},
        "estimator": {"use": "ppo:gae"},
    }


class TestPPOWithSeveralChoices(LossContract):
    use = "ppo"
    around = {"model": {"use": "mlp", "hidden": [8]}, "env": {"use": "testing:toy", "actions": "choices"}}


class TestPPOWithBits(LossContract):
    use = "ppo"
    around = {"model": {"use": "mlp", "hidden": [8]}, "env": {"use": "testing:toy", "actions": "bits"}}


class TestPPOWithMasks(LossContract):
    use = "ppo"
    around = {"model": {"use": "mlp", "hidden": [8]}, "env": {"use": "testing:toy-dict", "actions": "choices"}}


class TestPPOWithMaskedBits(LossContract):
    use = "ppo"
    around = {"model": {"use": "mlp", "hidden": [8]}, "env": {"use": "testing:toy-dict", "actions": "bits"}}


REMEMBERING = {
    "model": {"use": "testing:toy-memory"},
    "buffer": {"use": "rollout-sequences", "minibatch_size": 8, "sequence_length": 4},
    "estimator": {"use": "ppo:gae"},
}


class TestPPOWithMemory(LossContract):
    use = "ppo"
    config = {"normalize_advantage": True}
    around = {**REMEMBERING, "env": {"use": "testing:toy", "reset_mode": "next_step"}}


class TestA2CWithMemory(LossContract):
    use = "ppo:a2c"
    around = REMEMBERING


class TestGAEWithMemory(GAEContract):
    use = "ppo:gae"
    around = REMEMBERING


class TestA2C(LossContract):
    use = "ppo:a2c"


class TestGAE(GAEContract):
    use = "ppo:gae"


class TestStandardisingGAE(GAEContract):
    use = "ppo:gae"
    config = {"gamma": 0.9, "lmbda": 0.8, "every": "epoch", "standardise": True}


class TestOneStepGAE(GAEContract):
    use = "ppo:gae"
    config = {"gamma": 1.0, "lmbda": 0.0}


class TestMonteCarloGAE(GAEContract):
    use = "ppo:gae"
    config = {"gamma": 1.0, "lmbda": 1.0}


class TestExplainedVariance(HookContract):
    use = "ppo:explained-variance"
