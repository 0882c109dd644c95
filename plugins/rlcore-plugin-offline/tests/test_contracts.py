"""The contracts of the plugin, of its losses and of its model."""

import numpy as np
import pytest
import torch
from rlcore_plugin_datasets.dataset import write_dataset
from rlcore_plugin_datasets.episode import Episode
from rlcore_plugin_testing.contracts import HookContract, LossContract, ModelContract, PluginContract
from rlcore_plugin_testing.contracts.data import minibatch, observations
from rlcore_plugin_testing.toy import ToyEnv

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

    def test_it_is_the_mean_squared_error_of_actions_scaled_to_one(self):
        context = self.bench()
        entries, loss = minibatch(context), self.make(context)
        space = context.env_spec.action_space
        low, high = torch.from_numpy(space.low), torch.from_numpy(space.high)
        scaled = 2 * (entries["action"] - low) / (high - low) - 1
        error = torch.nn.functional.mse_loss(context.model.actor.unit(entries["observation"]), scaled)
        assert scaled.shape[-1] > 1  # where a sum over the actions is another number
        assert loss(entries)["loss_actor"].item() == pytest.approx(error.item(), rel=1e-5)


class TestCloningWithMemory(LossContract):
    use = "offline:bc"
    around = {
        "model": {"use": "testing:toy-memory"},
        "loss": {"use": "offline:bc"},
        "buffer": {"use": "rollout-sequences", "minibatch_size": 8, "sequence_length": 4},
        "estimator": None,
    }


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


class TestFittedQ(HookContract):
    """Beside a run that collects, as the suite counts its frames."""

    use = "offline:fqe"
    config = {"hidden": [4]}

    @pytest.fixture(autouse=True)
    def _around(self, tmp_path_factory, monkeypatch):
        spec = ToyEnv(ToyEnv.Config(num_envs=1, actions="discrete")).spec
        draw = np.random.default_rng(0)
        last = np.arange(9) == 8
        toys = [
            Episode(draw.normal(size=(10, 3)).astype(np.float32), np.arange(9) % 2, np.ones(9), last, last & False)
            for _ in range(3)
        ]
        folder = tmp_path_factory.mktemp("data") / "toy"
        write_dataset(folder, (spec.observation_space, spec.action_space), toys, {})
        buffer = {"use": "datasets:mixed", "path": str(folder), "minibatch_size": 8, "warmup_frames": 0}
        around = {**DISCRETE, "loss": {"use": "offline:discrete-cql"}, "buffer": buffer}
        monkeypatch.setattr(type(self), "around", around)
