"""A replay of observations that are normalised by moving statistics is warned of before the first frame."""

from pathlib import Path

import pytest
from rlcore_plugin_testing import make_trainer

REPLAY = {"loss": {"use": "loose-parts:td"}, "buffer": {"use": "replay", "capacity": 40, "minibatch_size": 8}}
ROLLOUT = {"loss": {"use": "loose-parts:td"}, "buffer": {"use": "rollout", "minibatch_size": 8}}
MOVING = {"use": "transforms:running-observation-norm"}


@pytest.mark.parametrize(
    ("transform", "sections", "told"),
    [(MOVING, REPLAY, True), (MOVING, ROLLOUT, False), ({"use": "gymnasium:observation-norm"}, REPLAY, False)],
)
def test_moving_statistics_in_a_replay_are_told(transform, sections, told, caplog):
    parts = {"plugins": {"files": [str(Path(__file__).with_name("loose_parts.py"))]}, "transform": [transform]}
    make_trainer(sections={**parts, **sections, "estimator": None})
    assert ("keep the statistics of their time" in caplog.text) == told
