"""The contracts of the plugin, of its losses and of its model."""

import torch

from rlcore.testing.contracts import LossContract, ModelContract, PluginContract
from rlcore.testing.contracts.data import observations

COMMON = {"estimator": None, "buffer": {"use": "rollout", "minibatch_size": 8}}
BOUNDED = {**COMMON, "env": {"use": "testing:toy", "actions": "bounded"}}
STOCHASTIC = {
    **BOUNDED,
    "model": {"use": "sac:actor-critic", "hidden": [8], "random_frames": 0},
    "loss": {"use": "sac:sac"},
}
DETERMINISTIC = {
    **BOUNDED,
    "model": {"use": "sac:actor-critic", "actor": "deterministic", "hidden": [8], "random_frames": 0},
    "loss": {"use": "sac:td3"},
}
IQL = {
    **BOUNDED,
    "model": {"use": "offline:iql", "hidden": [8], "random_frames": 0},
    "loss": {"use": "offline:iql"},
}
DISCRETE = {
    **COMMON,
    "env": {"use": "testing:toy", "actions": "discrete"},
    "model": {"use": "dqn:q-network", "hidden": [8]},
    "loss": {"use": "dqn:dqn"},
}


class TestPlugin(PluginContract):
    plugin = "offline"


class TestTD3BC(LossContract):
    use = "offline:td3-bc"
    around = DETERMINISTIC


class TestIQL(LossContract):
    use = "offline:iql"
    around = IQL


class TestCQL(LossContract):
    use = "offline:cql"
    config = {"conservative_samples": 3}
    around = STOCHASTIC


class TestDiscreteCQL(LossContract):
    use = "offline:discrete-cql"
    around = DISCRETE


class TestDiscreteCQLWithMasks(LossContract):
    use = "offline:discrete-cql"
    around = {**DISCRETE, "env": {"use": "testing:toy-dict"}}


class TestCloning(LossContract):
    use = "offline:bc"
    around = {**BOUNDED, "model": {"use": "mlp", "hidden": [8]}, "loss": {"use": "offline:bc"}}


class TestCloningOfADeterministicActor(LossContract):
    use = "offline:bc"
    around = DETERMINISTIC


class TestIQLModel(ModelContract):
    use = "offline:iql"
    config = {"hidden": [8], "random_frames": 0}
    around = IQL

    def behaviour(self, component, context):
        seen, actions = observations(context.env_spec, 5), component.box.from_unit(torch.linspace(-1, 1, 10).view(5, 2))
        with torch.no_grad():
            found = {part: getattr(component, part)(seen, actions) for part in ("critics", "target_critics")}
            found |= {part: getattr(component, part)(seen) for part in ("actor", "target_actor", "value")}
            return {**found, "spread": component.spread()}
