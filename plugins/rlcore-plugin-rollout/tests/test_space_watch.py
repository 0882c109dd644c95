"""Spaces without bounds are not watched."""

import gymnasium
import numpy as np
import pytest
from rlcore_plugin_rollout.space_watch import SpaceWatch

from rlcore.types import EnvSpec


class Unbounded(gymnasium.Space):
    """Says by None that it has no bounds."""

    low = high = None


@pytest.mark.parametrize("space", [Unbounded((2,), np.float32), gymnasium.spaces.Discrete(3)])
def test_a_space_without_bounds_is_not_watched(space, caplog):
    watch = SpaceWatch(EnvSpec("Unbounded-v0", space, gymnasium.spaces.Discrete(2), 1))
    watch.look(np.full((1, 1, 2), 1e9, dtype=np.float32))
    assert caplog.text == ""
