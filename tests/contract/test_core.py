"""The core's own components keep the contracts of their kinds."""

import math

import pytest

from rlcore.testing.contracts import (
    CollectorContract,
    EvaluatorContract,
    HookContract,
    LearnerContract,
    OptimizerContract,
    PluginContract,
    RolloutBufferContract,
    SchedulerContract,
)
from rlcore.types.progress import Progress


class TestPlugin(PluginContract):
    plugin = "core"


class TestLocalCollector(CollectorContract):
    use = "local"
    config = {"frames_per_batch": 14}


class TestRolloutBuffer(RolloutBufferContract):
    use = "rollout"
    config = {"minibatch_size": 8}


class TestFillingRolloutBuffer(RolloutBufferContract):
    use = "rollout"
    config = {"minibatch_size": 8, "remainder": "fill"}


class TestGradientLearner(LearnerContract):
    use = "gradient"


class TestClippingGradientLearner(LearnerContract):
    use = "gradient"
    config = {"max_grad_norm": 0.5}


class TestEpisodeEvaluator(EvaluatorContract):
    use = "episodes"
    config = {"episodes": 4}


class TestAdam(OptimizerContract):
    use = "adam"
    config = {"lr": 1e-2}


class TestAdamW(OptimizerContract):
    use = "adamw"
    config = {"lr": 1e-2, "weight_decay": 0.01}


class TestSGD(OptimizerContract):
    use = "sgd"
    config = {"lr": 1e-2, "momentum": 0.9}


class TestLinear(SchedulerContract):
    use = "linear"

    @pytest.mark.parametrize(("frames", "expected"), [(0, 0.5), (250, 0.375), (500, 0.25), (1000, 0.0)])
    def test_falls_in_a_straight_line(self, frames, expected):
        assert self.make(self.bench()).value(0.5, Progress(1000, frames=frames)) == expected

    def test_ends_at_its_final_share(self):
        assert self.make(self.bench(), final=0.2).value(0.5, Progress(1000, frames=1000)) == pytest.approx(0.1)


class TestCosine(SchedulerContract):
    use = "cosine"

    @pytest.mark.parametrize("frames", [0, 100, 500, 900, 1000])
    def test_falls_along_half_a_cosine(self, frames):
        expected = 0.5 * (0.1 + 0.9 * (1 + math.cos(math.pi * frames / 1000)) / 2)
        assert self.make(self.bench(), final=0.1).value(0.5, Progress(1000, frames=frames)) == pytest.approx(expected)


class TestProgressBar(HookContract):
    use = "progress-bar"
    transient = ("_bar",)


class TestConsoleTable(HookContract):
    use = "console-table"
    transient = ("_shown_at",)


class TestRewardClip(HookContract):
    use = "reward-clip"
    config = {"limit": 0.5}
