"""A stopped and resumed run equals an uninterrupted one, whatever the transforms remember."""

import pytest
from rlcore_plugin_testing import make_run

EACH = {
    "running-observation-norm": [{"use": "transforms:running-observation-norm"}],
    "frame-stack": [{"use": "transforms:frame-stack", "frames": 3}],
    "reward-scale": [{"use": "transforms:reward-scale", "scale": 0.1}],
    "reward-norm": [{"use": "transforms:reward-norm"}],
    "time-feature": [{"use": "transforms:time-feature"}],
    "step-counter": [{"use": "transforms:step-counter"}],
    "reward-sum": [{"use": "transforms:reward-sum"}],
    "all": [
        {"use": "transforms:step-counter"},
        {"use": "transforms:running-observation-norm"},
        {"use": "transforms:time-feature"},
        {"use": "transforms:frame-stack"},
        {"use": "transforms:reward-scale", "shift": -1.0},
        {"use": "transforms:reward-norm"},
    ],
}


def newest(run):
    return run.trainer.parts.store.entries()[-1].manifest


ON_LEAVES = [
    {"use": "transforms:running-observation-norm", "leaf": "state"},
    {"use": "transforms:frame-stack", "leaf": "frame"},
    {"use": "transforms:time-feature", "leaf": "state"},
]


def test_transforms_of_leaves_resume_too(tmp_path):
    env = {"use": "testing:toy-dict", "episode_lengths": [19, 7, 12]}
    check_resume(tmp_path, {"env": env, "model": {"use": "mlp", "hidden": [8]}, "transform": ON_LEAVES})


@pytest.mark.parametrize("reset_mode", ["same_step", "next_step"])
@pytest.mark.parametrize("transforms", EACH.values(), ids=EACH)
def test_a_stopped_and_resumed_run_equals_an_uninterrupted_one(tmp_path, transforms, reset_mode):
    # at the stop, after 24 steps of each env, both are in the middle of an episode
    env = {"use": "testing:toy", "reset_mode": reset_mode, "episode_lengths": [19, 7, 12]}
    check_resume(tmp_path, {"env": env, "transform": transforms})


def check_resume(tmp_path, sections):
    whole = make_run("run.total_frames=96", sections=sections, folder=tmp_path / "whole")
    whole.trainer.train()
    part = make_run("run.total_frames=96", sections=sections, folder=tmp_path / "part")
    part.trainer.stop_at = 48
    part.trainer.train()
    assert newest(part)["digest"] != newest(whole)["digest"]
    resumed = make_run("run.total_frames=96", sections=sections, folder=tmp_path / "part", resume=True)
    resumed.trainer.train()
    assert newest(resumed)["exact"]
    assert newest(resumed)["digest"] == newest(whole)["digest"]
    names = [keys["use"] for keys in sections["transform"]]
    saved = {name for name in newest(whole)["digests"] if name.startswith("transform.")}
    expected = {name.replace("transforms:", "transform.") for name in names if "scale" not in name}
    assert saved == expected, "a transform with a memory does not save it"
