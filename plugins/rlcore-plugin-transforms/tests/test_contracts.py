"""The contracts of the plugin and of each transform, and what a config may not say."""

import numpy as np
import pytest
import torch

from rlcore.errors import ConfigError
from rlcore.testing import make_config, make_run
from rlcore.testing.contracts import PluginContract, TransformContract
from rlcore.testing.contracts.data import made_up

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


class RewardContract(TransformContract):
    """The state of these shows in batches, not in observations."""

    def exercise(self, component, context):
        rewarded(component, context, [True, False, False])

    def behaviour(self, component, context):
        return [rewarded(component, context, [False, False, True, False]) for _ in range(2)]

    def test_observations_pass_unchanged(self):
        transform = self.make(self.bench())
        observation = np.ones((2, 3), dtype=np.float32)
        assert np.array_equal(transform.step(observation, np.ones(2, dtype=bool)), observation)
        assert np.array_equal(transform.final(observation[0], 0), observation[0])


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
        "from rlcore.testing.toy import ToyEnv\n"
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
