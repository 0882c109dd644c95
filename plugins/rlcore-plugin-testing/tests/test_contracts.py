"""The contracts of the plugin, of the toy parts, and of the parts of the fault tools."""

import json

import gymnasium
import numpy as np
import pytest
from rlcore_plugin_testing.contracts import (
    CheckpointerContract,
    DataBufferContract,
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
from rlcore_plugin_testing.toy import ToyDistribution

SEQUENCES = {"buffer": {"use": "rollout-sequences", "minibatch_size": 8, "sequence_length": 4}}
SEEING_DICTS = {"model": {"use": "mlp", "hidden": [8]}}


def with_actions(actions):
    return {"env": {"use": "testing:toy", "actions": actions}}


class TestPlugin(PluginContract):
    plugin = "testing"


class TestToyEnv(EnvContract):
    use = "testing:toy"
    terminates = {"ends": ["terminated"]}
    truncates = {"ends": ["truncated"]}


class TestNextStepToyEnv(EnvContract):
    use = "testing:toy"
    config = {"reset_mode": "next_step", "num_envs": 3}
    around = {"collector": {"frames_per_batch": 24}}
    terminates = {"ends": ["terminated"]}
    truncates = {"ends": ["truncated"]}


class TestToyDictEnv(EnvContract):
    use = "testing:toy-dict"
    around = SEEING_DICTS
    terminates = {"ends": ["terminated"]}
    truncates = {"ends": ["truncated"]}


class TestToyDictEnvWithChoices(EnvContract):
    use = "testing:toy-dict"
    config = {"actions": "choices", "reset_mode": "next_step"}
    around = SEEING_DICTS
    terminates = {"ends": ["terminated"]}
    truncates = {"ends": ["truncated"]}


class TestToyDictEnvWithBits(EnvContract):
    use = "testing:toy-dict"
    config = {"actions": "bits"}
    around = SEEING_DICTS
    terminates = {"ends": ["terminated"]}
    truncates = {"ends": ["truncated"]}


class TestFaultyEnvWithoutAFault(EnvContract):
    use = "testing:faulty"
    terminates = {"ends": ["terminated"]}
    truncates = {"ends": ["truncated"]}


class TestToyModel(ModelContract):
    use = "testing:toy"


class TestDiscreteToyModel(ModelContract):
    use = "testing:toy"
    around = with_actions("discrete")


class TestBoundedToyModel(ModelContract):
    use = "testing:toy"
    around = with_actions("bounded")


class TestToyMemoryModel(ModelContract):
    use = "testing:toy-memory"
    around = SEQUENCES


class TestDiscreteToyMemoryModel(ModelContract):
    use = "testing:toy-memory"
    around = {**SEQUENCES, **with_actions("discrete")}


class TestToyNormal(DistributionContract):
    parameters = [[0.0], [-3.0], [1.5]]
    extremes = [[1e4]]

    def distribution(self):
        return ToyDistribution(gymnasium.spaces.Box(-np.inf, np.inf, (1,)))


class TestToyCategorical(DistributionContract):
    discrete = 3
    parameters = [[0.0, 0.0, 0.0], [2.0, -1.0, 0.5]]
    extremes = [[100.0, 0.0, -100.0]]

    def distribution(self):
        return ToyDistribution(gymnasium.spaces.Discrete(3))


class TestToyTransform(TransformContract):
    use = "testing:toy"


class TestToyEstimator(EstimatorContract):
    use = "testing:toy"


class TestToyLoss(LossContract):
    use = "testing:toy"


class TestToyData(DataBufferContract):
    use = "testing:toy-data"


class TestToyHook(HookContract):
    use = "testing:toy"


class TestToyLogger(LoggerContract):
    use = "testing:toy"

    def read_back(self, folder):
        return [tuple(json.loads(line)) for line in (folder / "toy.jsonl").read_text().splitlines()]


class TestToyCheckpointer(CheckpointerContract):
    use = "testing:toy"


class TestFaultyHookWithoutAFault(HookContract):
    use = "testing:faulty"


class TestKiller(HookContract):
    use = "testing:killer"
    config = {"plan": "/nonexistent/plan.json"}
    transient = ("_counts",)  # they are of this process


class TestRecorder(HookContract):
    use = "testing:recorder"
    transient = ("_batch", "_ended")  # of the running iteration

    @pytest.fixture(autouse=True)
    def _elsewhere(self, tmp_path_factory, monkeypatch):
        path = tmp_path_factory.mktemp("recorder") / "lines"
        monkeypatch.setattr(type(self), "config", {"path": str(path)})
