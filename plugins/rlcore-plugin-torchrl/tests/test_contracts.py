"""The contracts of the plugin and of its hooks; its other names are lent to rlcore."""

import pytest
from pydantic import ValidationError
from rlcore_plugin_testing.contracts import (
    BufferContract,
    EnvContract,
    EstimatorContract,
    HookContract,
    LossContract,
    ModelContract,
    PluginContract,
)
from rlcore_plugin_testing.contracts.data import collected

from rlcore.errors import ConfigError

BATCH_KEYS = [
    *("observation", "action", "sample_log_prob"),
    *(["next", name] for name in ("observation", "reward", "done", "terminated", "truncated")),
]
OF_A_HOOK_OBJECT = {"transient": ("_trainer",)}  # the hook is told of its trainer again

# name of the suite: what stands in it
SUITES = {
    "BatchSubSampler": {"use": "batch-sub-sampler", "config": {"batch_size": 5}, **OF_A_HOOK_OBJECT},
    "ClearCudaCache": {"use": "clear-cuda-cache", "config": {"interval": 2}, **OF_A_HOOK_OBJECT},
    "CountFramesLog": {"use": "count-frames-log", **OF_A_HOOK_OBJECT},
    "EarlyStopping": {
        "use": "early-stopping",
        "config": {"monitor": "evaluation/return", "patience": 1000},
        **OF_A_HOOK_OBJECT,
    },
    "LogScalar": {"use": "log-scalar", **OF_A_HOOK_OBJECT},
    "LogTiming": {"use": "log-timing", **OF_A_HOOK_OBJECT},
    "RewardNormalizer": {"use": "reward-normalizer", **OF_A_HOOK_OBJECT},
    "UpdateWeights": {"use": "update-weights", "config": {"interval": 3}, "transient": ("trainer", "_progress")},
}
for _name, _attributes in SUITES.items():
    globals()[f"Test{_name}"] = type(f"Test{_name}", (HookContract,), {**_attributes, "__module__": __name__})


NETWORK = {"part": "MLP", "num_cells": [8]}
MODEL = {"use": "torchrl", "actor": NETWORK, "value": NETWORK}
LOSS = {"use": "torchrl", "part": "ClipPPOLoss"}
AROUND = {"model": MODEL, "loss": LOSS, "estimator": {"use": "torchrl", "part": "GAE", "lmbda": 0.95}}


def keys_of(section):
    return {key: value for key, value in section.items() if key != "use"}


class TestPlugin(PluginContract):
    plugin = "torchrl"


class TestEnv(EnvContract):
    use = "torchrl"
    config = {"part": "GymEnv", "env_name": "CartPole-v1", "num_envs": 2}

    def test_config_refuses_an_unknown_key(self):
        """What a wrapped library takes, it knows when the env is built; a misspelled argument is refused at once."""
        with pytest.raises(ConfigError, match="no_such_key"):
            self.make(self.bench(), no_such_key=1)
        with pytest.raises(ValidationError, match="did you mean 'env_name'"):
            self.settings(env_nam="CartPole-v1")


class TestEnvOfTorchRLItself(EnvContract):
    use = "torchrl"
    config = {"part": "PendulumEnv", "num_envs": 2}
    config |= {"transforms": [{"part": "StepCounter", "max_steps": 40}, {"part": "UnsqueezeTransform", "dim": -1}]}
    config["transforms"][1] |= {"in_keys": ["th", "thdot"], "out_keys": ["th1", "thdot1"]}
    config["transforms"].append({"part": "CatTensors", "in_keys": ["th1", "thdot1"], "out_key": "observation"})
    config["observation"] = "observation"
    terminates = None
    truncates = {}


class TestModel(ModelContract):
    use = "torchrl"
    config = keys_of(MODEL)
    around = AROUND


class TestLoss(LossContract):
    use = "torchrl"
    config = keys_of(LOSS)
    around = AROUND

    def test_contains_the_parts_that_it_uses(self):
        """A compiled update would replace weights that TorchRL keeps in TensorDicts, so it is refused."""
        with pytest.raises(ConfigError, match=r"\[learner\] compile = true"):
            self.bench(around={"learner": {"compile": True}})


class TestEstimator(EstimatorContract):
    use = "torchrl"
    config = keys_of(AROUND["estimator"])
    around = AROUND
    test_nothing_may_follow = None  # it watches a part `critic`; TorchRL's is called `value`, and asked about every row


class TestBuffer(BufferContract):
    use = "torchrl"
    config = {"capacity": 64, "minibatch_size": 4, "warmup_frames": 0}
    around = {"model": {"use": "sac:actor-critic", "hidden": [8]}, "loss": {"use": "sac"}, "estimator": []}
    around |= {"env": {"use": "testing:toy", "actions": "bounded"}}
    keeps_experience = True


class TestSelectKeys(HookContract):
    use = "select-keys"
    config = {"keys": BATCH_KEYS}
    transient = ("_trainer",)

    def test_batches_stay_whole(self):
        """All but what is not named: that is dropped, as it should be."""
        _, trainer = self.in_a_run()
        batch = collected(trainer.hooks.hooks[0].instance.context)
        changed = trainer.hooks.batch_process(batch.clone().set("further", batch["action"]), trainer)
        assert changed.batch_size == batch.batch_size
        named = {key if isinstance(key, str) else tuple(key) for key in BATCH_KEYS}
        assert set(changed.keys(True, True)) == named


class TestEarlyStoppingThatStops(HookContract):
    use = "early-stopping"
    config = {"monitor": "progress/updates", "mode": "min", "patience": 16}
    transient = ("_trainer",)

    def test_runs_and_resumes_in_a_small_run(self, tmp_path):
        """Stopped in the middle and resumed, it stops where the run without a stop does, and stays stopped."""
        whole = self.run(folder=tmp_path / "whole").trainer
        whole.train()
        assert (whole.progress.frames, whole.stop_reason[:26]) == (48, "metric 'progress/updates' ")
        first = self.run(folder=tmp_path / "parts").trainer
        first.stop_at = 32
        first.train()
        second = self.run(folder=tmp_path / "parts", resume=True).trainer
        second.train()
        assert (second.progress.frames, second.stop_reason) == (48, whole.stop_reason)
        third = self.run(folder=tmp_path / "parts", resume=True).trainer
        third.train()
        assert (third.progress.frames, third.stop_reason) == (48, whole.stop_reason), "it decides the same again"
        longer = self.run(folder=tmp_path / "longer").trainer
        longer.load_state_dict(third.state_dict())
        longer.hooks.hooks[-1].instance.patience = 1000
        longer.train()
        assert (longer.progress.frames, longer.stop_reason) == (64, None), "unless it is told to wait longer"
