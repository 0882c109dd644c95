"""The contracts of the plugin, of the losses and of the estimator."""

from rlcore_plugin_testing.contracts import EstimatorContract, LossContract, PluginContract

ESTIMATED = {"estimator": {"use": "vtrace"}}
REMEMBERING = {
    "model": {"use": "testing:toy-memory"},
    "buffer": {"use": "rollout-sequences", "minibatch_size": 8, "sequence_length": 4},
    **ESTIMATED,
}


class TestPlugin(PluginContract):
    plugin = "vtrace"


class TestVTrace(EstimatorContract):
    use = "vtrace"


class TestVTraceWithMemory(EstimatorContract):
    use = "vtrace"
    config = {"gamma": 0.9, "lmbda": 0.8, "rho_clip": 2.0, "every": "batch"}
    around = REMEMBERING


class TestIMPALA(LossContract):
    use = "vtrace:impala"
    around = ESTIMATED


class TestIMPALAWithMemory(LossContract):
    use = "vtrace:impala"
    around = REMEMBERING


class TestAPPO(LossContract):
    use = "vtrace:appo"
    around = ESTIMATED


class TestAPPOWithEverything(LossContract):
    use = "vtrace:appo"
    config = {"normalize_advantage": True, "clip_value": True, "target_network": False}
    around = ESTIMATED


class TestAPPOWithMemory(LossContract):
    use = "vtrace:appo"
    config = {"target_interval": 3, "target_tau": 0.5}
    around = REMEMBERING
