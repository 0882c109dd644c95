"""The toy parts keep the contracts that they are examples of."""

import json

import gymnasium
import numpy as np
import pytest

from rlcore.testing.contracts import (
    CheckpointerContract,
    DistributionContract,
    EnvContract,
    EstimatorContract,
    HookContract,
    LoggerContract,
    LossContract,
    ModelContract,
    PluginContract,
    TransformContract,
)
from rlcore.testing.toy import ToyDistribution


class TestPlugin(PluginContract):
    plugin = "testing"


class TestEnv(EnvContract):
    use = "testing:toy"
    terminates = {"ends": ["terminated"]}
    truncates = {"ends": ["truncated"]}


class TestNextStepEnv(EnvContract):
    use = "testing:toy"
    config = {"reset_mode": "next_step", "num_envs": 3}
    around = {"collector": {"frames_per_batch": 24}}
    terminates = {"ends": ["terminated"]}
    truncates = {"ends": ["truncated"]}


class TestFaultyEnvWithoutAFault(EnvContract):
    use = "testing:faulty"
    terminates = {"ends": ["terminated"]}
    truncates = {"ends": ["truncated"]}


class TestFaultyHookWithoutAFault(HookContract):
    use = "testing:faulty"


class TestModel(ModelContract):
    use = "testing:toy"


class TestDiscreteModel(ModelContract):
    use = "testing:toy"
    around = {"env": {"use": "testing:toy", "actions": "discrete"}}


class TestBoundedModel(ModelContract):
    use = "testing:toy"
    around = {"env": {"use": "testing:toy", "actions": "bounded"}}


class TestNormal(DistributionContract):
    parameters = [[0.0], [-3.0], [1.5]]
    extremes = [[1e4]]

    def distribution(self):
        return ToyDistribution(gymnasium.spaces.Box(-np.inf, np.inf, (1,)))


class TestCategorical(DistributionContract):
    discrete = 3
    parameters = [[0.0, 0.0, 0.0], [2.0, -1.0, 0.5]]
    extremes = [[100.0, 0.0, -100.0]]

    def distribution(self):
        return ToyDistribution(gymnasium.spaces.Discrete(3))


class TestTransform(TransformContract):
    use = "testing:toy"


class TestEstimator(EstimatorContract):
    use = "testing:toy"


class TestLoss(LossContract):
    use = "testing:toy"


class TestHook(HookContract):
    use = "testing:toy"


class TestLogger(LoggerContract):
    use = "testing:toy"

    def read_back(self, folder):
        return [tuple(json.loads(line)) for line in (folder / "toy.jsonl").read_text().splitlines()]


class TestCheckpointer(CheckpointerContract):
    use = "testing:toy"


class TestRecorder(HookContract):
    use = "testing:recorder"
    transient = ("_batch", "_ended")  # of the running iteration

    @pytest.fixture(autouse=True)
    def _elsewhere(self, tmp_path_factory, monkeypatch):
        path = tmp_path_factory.mktemp("recorder") / "lines"
        monkeypatch.setattr(type(self), "config", {"path": str(path)})


class TestKiller(HookContract):
    use = "testing:killer"
    transient = ("_counts",)  # of this process
    config = {"plan": "/nonexistent/plan.json"}
