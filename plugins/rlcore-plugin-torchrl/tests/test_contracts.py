"""The contracts of the plugin and of its hooks; its other names are lent to rlcore."""

from rlcore_plugin_testing.contracts import HookContract, PluginContract
from rlcore_plugin_testing.contracts.data import collected

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


class TestPlugin(PluginContract):
    plugin = "torchrl"


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
