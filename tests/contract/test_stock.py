"""The stock hooks that a config can name keep the contract of their kind."""

from rlcore.testing.contracts import HookContract
from rlcore.testing.contracts.data import collected

EVERY_KEY = [
    "observation",
    "action",
    "sample_log_prob",
    ["next", "observation"],
    ["next", "reward"],
    ["next", "done"],
    ["next", "terminated"],
    ["next", "truncated"],
]


class StockHookContract(HookContract):
    transient = ("_trainer",)


class TestSelectKeys(StockHookContract):
    use = "select-keys"
    config = {"keys": EVERY_KEY}

    def test_batches_stay_whole(self):
        """All but what is not named: that is dropped, as it should be."""
        _, trainer = self.in_a_run()
        batch = collected(trainer.hooks.hooks[0].instance.context)
        changed = trainer.hooks.batch_process(batch.clone().set("further", batch["action"]), trainer)
        assert changed.batch_size == batch.batch_size
        named = {key if isinstance(key, str) else tuple(key) for key in EVERY_KEY}
        assert set(changed.keys(True, True)) == named


class TestBatchSubSampler(StockHookContract):
    use = "batch-sub-sampler"
    config = {"batch_size": 5}


class TestClearCudaCache(StockHookContract):
    use = "clear-cuda-cache"
    config = {"interval": 2}


class TestCountFramesLog(StockHookContract):
    use = "count-frames-log"


class TestLogScalar(StockHookContract):
    use = "log-scalar"


class TestLogTiming(StockHookContract):
    use = "log-timing"


class TestRewardNormalizer(StockHookContract):
    use = "reward-normalizer"


class TestEarlyStopping(StockHookContract):
    use = "early-stopping"
    config = {"monitor": "evaluation/return", "patience": 1000}


class TestEarlyStoppingThatStops(StockHookContract):
    use = "early-stopping"
    config = {"monitor": "progress/updates", "mode": "min", "patience": 16}

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


class TestUpdateWeights(StockHookContract):
    use = "update-weights"
    transient = ("trainer", "_progress")
    config = {"interval": 3}
