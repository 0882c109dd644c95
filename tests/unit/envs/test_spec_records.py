"""Specs of envs as plain values: the same spec comes back, through JSON, or none is recorded."""

from __future__ import annotations

import json

import numpy as np
import pytest
from gymnasium import spaces

from rlcore import EnvSpec
from rlcore.envs.spec_records import recorded_spec, spec_record

ACTIONS = spaces.Discrete(3, start=1)


def spec(observation_space, action_space=ACTIONS):
    return EnvSpec("some-v0", observation_space, action_space, 1, frame_skip=4, max_episode_steps=7)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1, 1, (3,)),
        spaces.Box(np.array([-1.1, -np.inf]), np.array([np.inf, 2.2]), dtype=np.float64),
        spaces.Box(np.array([-4.8, -np.inf], np.float32), np.array([4.8, np.inf], np.float32)),
        spaces.Box(0, 255, (84, 84, 4), np.uint8),
        spaces.Box(-np.inf, np.inf, (), np.float32),
        spaces.Box(np.array([-(2**62), 0]), np.array([2**62 + 1, 5]), dtype=np.int64),
        spaces.Discrete(5),
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary(4),
        spaces.MultiBinary([2, 2]),
    ],
    ids=str,
)
def test_a_spec_comes_back_through_json(space):
    back = recorded_spec(json.loads(json.dumps(spec_record(spec(space)), allow_nan=False)))
    assert back == spec(space)
    assert back.observation_space.dtype == space.dtype


class OwnBox(spaces.Box):
    """A space of another class with a field more."""

    __name__ = "Box"


@pytest.mark.parametrize(
    "space",
    [
        spaces.Dict({"a": spaces.Discrete(2)}),
        OwnBox(-1, 1, (2,)),
        spaces.Box(np.arange(20_000.0), np.arange(20_000.0) + 1, dtype=np.float64),
    ],
    ids=["dict", "own class", "many bounds"],
)
def test_what_cannot_be_recorded_is_not(space):
    assert spec_record(spec(space)) == {}
    assert spec_record(spec(spaces.Discrete(2), space)) == {}
