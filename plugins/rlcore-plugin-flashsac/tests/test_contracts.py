"""The contracts of the plugin, the model, the loss, the transforms and the hook."""

import torch
from rlcore_plugin_flashsac.observation_scale import ObservationNorm
from rlcore_plugin_flashsac.return_scale import RewardScale
from rlcore_plugin_testing.contracts import HookContract, LossContract, ModelContract, PluginContract, TransformContract
from rlcore_plugin_testing.contracts.data import made_up, observations

from .sections import FLASH, OF_PAPERS, SCALES, around


class TestPlugin(PluginContract):
    plugin = "flashsac"


class BlocksContract(ModelContract):
    """The critics see actions besides, and the temperature sees nothing."""

    use = "flashsac:blocks"
    around = FLASH
    config = {key: value for key, value in FLASH["model"].items() if key != "use"}

    def behaviour(self, component, context):
        observation, actions = (
            observations(context.env_spec, 5),
            component.box.from_unit(torch.linspace(-1, 1, 10).view(5, 2)),
        )
        with torch.no_grad():
            outputs = {part: getattr(component, part)(observation, actions) for part in ("critics", "target_critics")}
            return {**outputs, "actor": component.actor(observation), "temperature": component.temperature()}


class TestBlocks(BlocksContract):
    pass


class TestPlainBlocks(BlocksContract):
    config = {**BlocksContract.config, **OF_PAPERS["xqc"], "random_frames": 10, "noise_steps": 4}


class TestSphericalBlocks(BlocksContract):
    around = {**FLASH, "transform": SCALES}
    config = {**BlocksContract.config, **OF_PAPERS["simbav2"]}


class TestResidualBlocks(BlocksContract):
    config = {**BlocksContract.config, **OF_PAPERS["bro"], "critics": 3}


class StatisticsKept(LossContract):
    """Each call finds the running statistics of the first, so that the losses of two calls can be compared."""

    use = "flashsac:categorical-sac"

    def make(self, context, **changes):
        loss = super().make(context, **changes)
        forward = loss.forward

        def restoring(minibatch, names=None):
            moving = {name: buffer for name, buffer in loss.named_buffers() if "running" in name}
            statistics = {name: buffer.clone() for name, buffer in moving.items()}
            result = forward(minibatch, names)
            for name, buffer in moving.items():
                buffer.copy_(statistics[name])
            return result

        loss.forward = restoring
        return loss


class TestFlashSAC(StatisticsKept):
    around = FLASH


class TestXQC(StatisticsKept):
    around = around(model=OF_PAPERS["xqc"])
    config = {"target_entropy": -1.0}


class TestSimbaV2(StatisticsKept):
    around = around(model=OF_PAPERS["simbav2"])
    config = {"temperature": 0.1}


class TestBRO(StatisticsKept):
    around = around(model=OF_PAPERS["bro"])


class TestResets(HookContract):
    use = "flashsac:resets"
    config = {"at": [16, 48]}


class TestReturnScale(TransformContract):
    use = "flashsac:return-scale"

    def exercise(self, component, context):
        self.learnt(component, context, [True, False, False])

    def behaviour(self, component, context):
        return [self.learnt(component, context, [False, False, True, False]) for _ in range(2)]

    def learnt(self, component, context, flags):
        """Return the scale after a batch of random rewards; `flags` are the ends of env 0."""
        ends = torch.zeros(2, len(flags), dtype=torch.bool)
        ends[0] = torch.tensor(flags)
        mask = torch.ones_like(ends)
        mask[:, 1] = False
        batch = made_up(context, ends, torch.zeros_like(ends), mask)
        rewards, scale = batch["next", "reward"].clone(), RewardScale()
        component.fill(scale, 5.0)
        assert torch.equal(component.batch(batch)["next", "reward"], rewards)
        return scale.value.clone()


class TestObservationScale(TransformContract):
    use = "flashsac:observation-scale"

    def exercise(self, component, context):
        self.learnt(component, context)

    def behaviour(self, component, context):
        return [self.learnt(component, context) for _ in range(2)]

    def learnt(self, component, context):
        """Return mean and deviation after a batch of random observations, of which some steps do not count."""
        ends = torch.zeros(2, 3, dtype=torch.bool)
        mask = torch.ones_like(ends)
        mask[:, 1] = False
        batch = made_up(context, ends, torch.zeros_like(ends), mask)
        observation = batch["observation"].clone()
        norm = ObservationNorm(observation.shape[-1])
        component.fill(norm)
        assert torch.equal(component.batch(batch)["observation"], observation)
        return norm.mean.clone(), norm.deviation.clone()
