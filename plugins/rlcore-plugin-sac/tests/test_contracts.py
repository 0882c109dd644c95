"""The contracts of the plugin, of the losses and of the model; each key in one suite of its component."""

import torch
from rlcore_plugin_testing.contracts import LossContract, ModelContract, PluginContract
from rlcore_plugin_testing.contracts.data import observations

from .more_sections import CROSSQ, DISCRETE
from .sections import AROUND, DETERMINISTIC, DETERMINISTIC_SEQUENCES, DROPOUT, ONE_CRITIC, SEQUENCES, around


class TestPlugin(PluginContract):
    plugin = "sac"


class ActorCriticContract(ModelContract):
    """The critics see actions besides, and the temperature sees nothing."""

    use = "sac:actor-critic"
    around = AROUND

    def behaviour(self, component, context):
        seen, actions = observations(context.env_spec, 5), component.box.from_unit(torch.linspace(-1, 1, 10).view(5, 2))
        with torch.no_grad():
            found = {part: getattr(component, part)(seen, actions) for part in ("critics", "target_critics")}
            return {**found, "actor": component.actor(seen), "temperature": component.temperature()}


class TestActorCriticThatBeginsAtRandom(ActorCriticContract):
    config = {"hidden": [8], "critic_hidden": [16, 8], "critics": 3, "random_frames": 10, "activation": "silu"}


class TestActorCriticWithNorm(ActorCriticContract):
    config = {"hidden": [8], "norm": "layer", "dropout": 0.1, "initialisation": "orthogonal", "random_frames": 0}


class TestCrossQModel(ActorCriticContract):
    use = "sac:crossq"
    config = {"hidden": [8], "critic_hidden": [8, 8], "random_frames": 0}
    around = CROSSQ

    def behaviour(self, component, context):
        seen, actions = observations(context.env_spec, 5), component.box.from_unit(torch.linspace(-1, 1, 10).view(5, 2))
        with torch.no_grad():
            found = {"critics": component.critics(seen, actions), "temperature": component.temperature()}
            return {**found, "actor": component.actor(seen)}


class TestStateDependentExploration(ActorCriticContract):
    config = {"hidden": [8, 8], "random_frames": 12, "sde": True, "sde_every": 2, "sde_log_std": -1.0}


class TestDiscreteModel(ModelContract):
    use = "sac:discrete-actor-critic"
    config = {"hidden": [8, 8], "critics": 3, "random_frames": 0}
    around = DISCRETE

    def behaviour(self, component, context):
        seen = observations(context.env_spec, 5)
        with torch.no_grad():
            found = {part: getattr(component, part)(seen) for part in ("actor", "critics", "target_critics")}
            return {**found, "temperature": component.temperature()}


class TestDiscreteSACWithAnotherFirstAction(LossContract):
    use = "sac:discrete-sac"
    around = {**DISCRETE, "env": {**DISCRETE["env"], "actions": "numbered"}}


class TestDiscreteSACWithMasks(LossContract):
    use = "sac:discrete-sac"
    config = {"temperature": 0.1}
    around = {**DISCRETE, "env": {"use": "testing:toy-dict"}}


class TestDeterministicActorCritic(ActorCriticContract):
    config = {"actor": "deterministic", "hidden": [8], "noise": 0.3, "random_frames": 0}
    around = DETERMINISTIC

    def behaviour(self, component, context):
        seen, actions = observations(context.env_spec, 5), component.box.from_unit(torch.linspace(-1, 1, 10).view(5, 2))
        with torch.no_grad():
            found = {part: getattr(component, part)(seen, actions) for part in ("critics", "target_critics")}
            return {**found, "actor": component.actor(seen), "target_actor": component.target_actor(seen)}


class RecurrentContract(ModelContract):
    """The critics see actions besides, and the temperature sees nothing."""

    use = "sac:recurrent-actor-critic"
    around = SEQUENCES

    def called(self, model, name):
        part = getattr(model, name)
        if name == "temperature":
            return None
        if "critics" not in name:
            return part

        def values(observation, state, first):
            leading = first.shape[:-1]
            action = model.box.from_unit(torch.linspace(-1, 1, 2)).expand(*leading, 2)
            return part(observation, state, first, action).movedim(0, -1).flatten(len(leading))

        return values

    def behaviour(self, component, context):
        seen = observations(context.env_spec, 5)
        state, first = component.policy.initial_state(5), torch.ones(5, 1, dtype=torch.bool)
        with torch.no_grad():
            return {name: part(seen, state, first) for name, part in self.remembering_parts(component).items()}


class TestRecurrentActorCriticThatBeginsAtRandom(RecurrentContract):
    config = {"cell": "gru", "size": 6, "layers": 2, "encoder_hidden": [], "critics": 3, "random_frames": 10}


class TestDeterministicRecurrentActorCritic(RecurrentContract):
    config = {"actor": "deterministic", "size": 6, "hidden": [8], "norm": "layer", "dropout": 0.1, "random_frames": 0}
    around = DETERMINISTIC_SEQUENCES


class TestREDQOverSequences(LossContract):
    use = "sac"
    config = {"target_subset": 2}
    around = {**SEQUENCES, "model": {**SEQUENCES["model"], "critics": 5}}


class TestTD3OverSequencesWithDropout(LossContract):
    use = "sac:td3"
    around = {
        **DETERMINISTIC_SEQUENCES,
        "model": {**DETERMINISTIC_SEQUENCES["model"], "norm": "layer", "dropout": 0.25},
    }


class TestDDPGOverSequences(LossContract):
    use = "sac:ddpg"
    around = {**DETERMINISTIC_SEQUENCES, "model": {**DETERMINISTIC_SEQUENCES["model"], "critics": 1}}


class TestSAC(LossContract):
    use = "sac"
    around = AROUND


class TestREDQ(LossContract):
    use = "sac"
    config = {"target_subset": 2, "temperature": 0.2, "target_interval": 3}
    around = around(model={"critics": 5})


class TestDroQ(LossContract):
    use = "sac"
    around = {**AROUND, "model": DROPOUT}


class TestTD3(LossContract):
    use = "sac:td3"
    around = DETERMINISTIC


class TestTD3WithDropout(LossContract):
    use = "sac:td3"
    config = {"target_noise": 0.0, "target_interval": 1}
    around = {**DETERMINISTIC, "model": {**DROPOUT, "actor": "deterministic"}}


class TestDDPGWithDropout(LossContract):
    use = "sac:ddpg"
    around = {**ONE_CRITIC, "model": {**DROPOUT, "actor": "deterministic", "critics": 1}}


class StatisticsKept(LossContract):
    """Each call finds the running statistics of the first, so that the losses of two calls can be compared."""

    use = "sac:crossq"

    def make(self, context, **changes):
        loss = super().make(context, **changes)
        forward = loss.forward

        def restoring(minibatch, names=None):
            kept = {name: buffer.clone() for name, buffer in loss.named_buffers()}
            result = forward(minibatch, names)
            for name, buffer in loss.named_buffers():
                buffer.copy_(kept[name])
            return result

        loss.forward = restoring
        return loss


class TestCrossQ(StatisticsKept):
    around = CROSSQ


class TestCrossQAfterTheWarmUp(StatisticsKept):
    config = {"temperature": 0.1}
    around = {**CROSSQ, "model": {**CROSSQ["model"], "norm_warmup": 0}}
