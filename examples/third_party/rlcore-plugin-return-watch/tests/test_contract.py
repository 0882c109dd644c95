"""The contract of hooks, and when this hook stops a run."""

from pathlib import Path

import pytest
import rlcore
from rlcore_plugin_testing import make_trainer
from rlcore_plugin_testing.contracts import HookContract, PluginContract

EXAMPLE = Path(__file__).parents[1] / "example.toml"


class TestPlugin(PluginContract):
    plugin = "return-watch"


class TestReturnWatch(HookContract):
    use = "return-watch"
    config = {"threshold": 1_000.0, "episodes": 3}


# three episodes of the toy env return at most 15 on average, and it runs a dozen of them
@pytest.mark.parametrize(("threshold", "episodes", "stops"), [(10.0, 3, True), (16.0, 3, False), (0.0, 100, False)])
def test_stops_at_the_threshold_and_not_before_the_window_is_full(threshold, episodes, stops):
    hook = {"use": "return-watch", "threshold": threshold, "episodes": episodes}
    trainer = make_trainer(sections={"hook": [hook]})
    trainer.train()
    assert (trainer.progress.frames < 64) is stops
    if stops:
        assert "mean return of 3 episodes is" in trainer.stop_reason
        assert trainer.progress.episodes >= 3


def test_a_resumed_run_goes_on_past_the_threshold(tmp_path):
    sections = {"hook": [{"use": "return-watch", "threshold": 10.0, "episodes": 3}]}
    first = make_trainer(sections=sections, folder=tmp_path)
    first.train()
    assert first.progress.frames < 64
    second = make_trainer(sections=sections, folder=tmp_path, resume=True)
    assert second.train().frames == 64


def test_the_example_trains(tmp_path):
    config = rlcore.load_config(EXAMPLE, ["run.total_frames=1_024", f"run.folder='{tmp_path}'"])
    assert rlcore.build(config).trainer.train().frames == 1024
