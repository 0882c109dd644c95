"""What several transforms remember together goes on at a resume; the contract says so of each."""

import pytest
from rlcore_plugin_testing import check_resumed

ALL = [
    {"use": "transforms:step-counter"},
    {"use": "transforms:running-observation-norm"},
    {"use": "transforms:time-feature"},
    {"use": "transforms:frame-stack", "frames": 3},
    {"use": "transforms:reward-scale", "shift": -1.0},
    {"use": "transforms:reward-norm"},
]
ON_LEAVES = [
    {"use": "transforms:running-observation-norm", "leaf": "state"},
    {"use": "transforms:frame-stack", "leaf": "frame"},
    {"use": "transforms:time-feature", "leaf": "state"},
]


def test_transforms_of_leaves_resume_too(tmp_path):
    env = {"use": "testing:toy-dict", "episode_lengths": [19, 7, 12]}
    check_saved(tmp_path, {"env": env, "model": {"use": "mlp", "hidden": [8]}, "transform": ON_LEAVES})


@pytest.mark.parametrize("reset_mode", ["same_step", "next_step"])
def test_all_of_them_resume_in_the_middle_of_episodes(tmp_path, reset_mode):
    # at the stop, after 24 steps of each env, both are in the middle of an episode
    env = {"use": "testing:toy", "reset_mode": reset_mode, "episode_lengths": [19, 7, 12]}
    check_saved(tmp_path, {"env": env, "transform": ALL})


def check_saved(tmp_path, sections):
    whole = check_resumed(tmp_path, "run.total_frames=96", sections=sections)
    names = [keys["use"] for keys in sections["transform"]]
    saved = {name for name in whole.parts.store.entries()[-1].manifest["digests"] if name.startswith("transform.")}
    expected = {name.replace("transforms:", "transform.") for name in names if "scale" not in name}
    assert saved == expected, "a transform with a memory does not save it"
