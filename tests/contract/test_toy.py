"""The toy parts keep the contracts that they are examples of."""

import json

from rlcore.testing.contracts import (
    CheckpointerContract,
    EnvContract,
    EstimatorContract,
    HookContract,
    LoggerContract,
    LossContract,
    ModelContract,
    PluginContract,
    TransformContract,
)


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


class TestModel(ModelContract):
    use = "testing:toy"


class TestDiscreteModel(ModelContract):
    use = "testing:toy"
    around = {"env": {"use": "testing:toy", "actions": "discrete"}}


class TestBoundedModel(ModelContract):
    use = "testing:toy"
    around = {"env": {"use": "testing:toy", "actions": "bounded"}}


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
