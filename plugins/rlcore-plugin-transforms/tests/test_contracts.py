"""The contracts of the plugin and of each transform, and what a config may not say."""

import numpy as np
import pytest
import torch
from rlcore_plugin_testing import make_config, make_run
from rlcore_plugin_testing.contracts import PluginContract, TransformContract
from rlcore_plugin_testing.contracts.data import made_up

from rlcore.errors import ConfigError

NEXT_STEP = {"env": {"use": "testing:toy", "reset_mode": "next_step"}}


class TestPlugin(PluginContract):
    plugin = "transforms"


class TestRunningObservationNorm(TransformContract):
    use = "transforms:running-observation-norm"


class TestRunningObservationNormOfNextStepEnvs(TestRunningObservationNorm):
    config = {"clip": 0.0}
    around = NEXT_STEP


class TestFrameStack(TransformContract):
    use = "transforms:frame-stack"


class TestFrameStackOfNextStepEnvs(TestFrameStack):
    config = {"frames": 3}
    around = NEXT_STEP


class TestTimeFeature(TransformContract):
    use = "transforms:time-feature"


class TestTimeFeatureOfNextStepEnvs(TestTimeFeature):
    around = NEXT_STEP


class TestRunningObservationNormOfALeaf(TransformContract):
    use = "transforms:running-observation-norm"
    around = {"env": {"use": "testing:toy-dict"}, "model": {"use": "mlp", "hidden": [8]}}
    leaf = "state"


class TestFrameStackOfALeaf(TestRunningObservationNormOfALeaf):
    use = "transforms:frame-stack"
    leaf = "frame"


class TestFrameStackOfALeafAlongANewDimension(TestFrameStackOfALeaf):
    config = {"dimension": "first", "frames": 3}


class TestTimeFeatureOfALeaf(TestRunningObservationNormOfALeaf):
    use = "transforms:time-feature"


class TestSelectOfALeaf(TestRunningObservationNormOfALeaf):
    use = "transforms:select"
    config = {"indices": [1]}


class TestFlatten(TransformContract):
    use = "transforms:flatten"


class TestFlattenOfLeavesWithAMask(TransformContract):
    use = "transforms:flatten"
    around = {"env": {"use": "testing:toy-dict", "actions": "choices"}, "model": {"use": "mlp", "hidden": [8]}}


class TestLastStep(TransformContract):
    use = "transforms:last-step"


class TestLastStepOfNextStepEnvs(TestLastStep):
    around = NEXT_STEP


class TestLastStepOfLeavesWithAMask(TransformContract):
    use = "transforms:last-step"
    around = {"env": {"use": "testing:toy-dict", "actions": "choices"}, "model": {"use": "mlp", "hidden": [8]}}


def rewarded(component, context, flags):
    """Return what becomes of a batch of random rewards; `flags` are the ends of env 0."""
    ends = torch.zeros(2, len(flags), dtype=torch.bool)
    ends[0] = torch.tensor(flags)
    mask = torch.ones_like(ends)
    mask[:, 1] = False
    batch = made_up(context, ends, torch.zeros_like(ends), mask)
    before = batch["next", "reward"].clone()
    changed = component.batch(batch)["next", "reward"]
    assert torch.equal(batch["next", "reward"], before), "the rewards of the collector were overwritten"
    return changed


class PassThroughContract(TransformContract):
    """The policy sees the same with and without these."""

    def test_observations_pass_unchanged(self):
        transform = self.make(self.bench())
        observation = np.ones((2, 3), dtype=np.float32)
        assert np.array_equal(transform.step(observation, np.ones(2, dtype=bool)), observation)
        assert np.array_equal(transform.final(observation[0], 0), observation[0])


class RewardContract(PassThroughContract):
    """The state of these shows in batches, not in observations."""

    def exercise(self, component, context):
        rewarded(component, context, [True, False, False])

    def behaviour(self, component, context):
        return [rewarded(component, context, [False, False, True, False]) for _ in range(2)]


class TotalsContract(PassThroughContract):
    """The state of these shows in entries of their own."""

    key = ""

    def exercise(self, component, context):
        self.totals(component, context, [True, False, False])

    def behaviour(self, component, context):
        return [self.totals(component, context, [False, False, True, False]) for _ in range(2)]

    def totals(self, component, context, flags):
        ends = torch.zeros(2, len(flags), dtype=torch.bool)
        ends[0] = torch.tensor(flags)
        changed = component.batch(made_up(context, ends, torch.zeros_like(ends)))
        return [changed[self.key], changed["next", self.key]]


class TestSelect(TransformContract):
    use = "transforms:select"
    config = {"indices": [2, 0]}


class TestDoubleToFloat(PassThroughContract):
    use = "transforms:double-to-float"


class TestStepCounter(TotalsContract):
    use = "transforms:step-counter"
    key = "step_count"


class TestRewardSum(TotalsContract):
    use = "transforms:reward-sum"
    key = "episode_reward"


class TestActionClip(PassThroughContract):
    use = "transforms:action-clip"
    around = {"env": {"use": "testing:toy", "actions": "bounded"}}


class TestActionScale(TestActionClip):
    use = "transforms:action-scale"
    config = {"low": 0.0}


class TestRewardScale(RewardContract):
    use = "transforms:reward-scale"
    config = {"scale": 0.5, "shift": -1.0}


class TestRewardNorm(RewardContract):
    use = "transforms:reward-norm"


class TestRewardNormOfNextStepEnvs(TestRewardNorm):
    config = {"gamma": 0.5, "clip": 0.0}
    around = NEXT_STEP


@pytest.mark.parametrize(
    ("use", "keys"),
    [
        ("running-observation-norm", {"clip": -1.0}),
        ("running-observation-norm", {"epsilon": 0.0}),
        ("running-observation-norm", {"clip": float("nan")}),
        ("frame-stack", {"frames": 0}),
        ("frame-stack", {"dimension": "middle"}),
        ("reward-scale", {"scale": float("inf")}),
        ("reward-norm", {"gamma": 1.5}),
        ("reward-norm", {"clip": -1.0}),
        ("time-feature", {"limit": 10}),
        ("action-scale", {"low": float("inf")}),
    ],
    ids=str,
)
def test_a_bad_config_is_refused_with_its_key(use, keys):
    (key,) = keys
    with pytest.raises(ConfigError, match=rf"\[transform\] {key}"):
        make_config(sections={"transform": [{"use": f"transforms:{use}", **keys}]})


def test_an_env_without_a_step_limit_has_no_time_feature(tmp_path):
    path = tmp_path / "unlimited.py"
    path.write_text(
        "from dataclasses import replace\n"
        "from rlcore import Component, hookimpl\n"
        "from rlcore_plugin_testing.toy import ToyEnv\n"
        "class Unlimited(ToyEnv):\n"
        "    def __init__(self, config, context):\n"
        "        super().__init__(config, context)\n"
        "        self.spec = replace(self.spec, max_episode_steps=None)\n"
        "@hookimpl\n"
        "def provide_components():\n"
        "    return [Component('env', 'unlimited', Unlimited)]\n"
    )
    sections = {
        "plugins": {"files": [str(path)]},
        "env": {"use": "unlimited"},
        "transform": [{"use": "transforms:time-feature"}],
    }
    with pytest.raises(ConfigError, match=r"'toy' has no step limit.*max_episode_steps"):
        make_run(sections=sections)


def test_bounds_in_the_wrong_order_are_refused():
    with pytest.raises(ConfigError, match=r"low = 1\.0 must be less than high = 1\.0"):
        make_config(sections={"transform": [{"use": "transforms:action-scale", "low": 1.0}]})


@pytest.mark.parametrize("use", ["action-clip", "action-scale"])
@pytest.mark.parametrize(("actions", "message"), [("unbounded", "with bounds"), ("discrete", "actions in a Box")])
def test_actions_without_bounds_are_refused(use, actions, message):
    sections = {"env": {"use": "testing:toy", "actions": actions}, "transform": [{"use": f"transforms:{use}"}]}
    with pytest.raises(ConfigError, match=f"{use} needs .*{message}"):
        make_run(sections=sections)
