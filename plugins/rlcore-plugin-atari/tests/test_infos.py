"""The infos that games tell of in every step: lives and frames, of each game its own."""

import numpy as np
import pytest
from rlcore_plugin_testing import through_checkpoint

from rlcore.types import Context

pytest.importorskip("ale_py")
pytest.importorskip("cv2")

from rlcore_plugin_atari.config import Config
from rlcore_plugin_atari.env import make

FRAMES = {"frame_number", "episode_frame_number"}


def told_by(vectorization):
    """Return two games, and the list that they tell into."""
    keys = {"game": "breakout", "num_envs": 2, "size": 24, "noop_max": 4, "max_frames": 2000, "episodic_life": True}
    env = make(Config(**keys, vectorization=vectorization, threads=1), Context.alone("tests"))
    told = []
    env.tell_infos(lambda index, infos, first: told.append((index, dict(infos), first)))
    return env, told


def plan(steps):
    return np.random.default_rng(0).integers(4, size=(steps, 2))


@pytest.mark.parametrize("vectorization", ["serial", "native"])
def test_frames_go_on_in_steps_and_lives_are_lost_at_ends(vectorization):
    env, told = told_by(vectorization)
    env.reset(seed=1)
    assert [(index, infos["lives"], first) for index, infos, first in told] == [(0, 5, True), (1, 5, True)]
    assert all({"lives", *FRAMES} == set(infos) for _, infos, _ in told)
    before = {index: infos for index, infos, _ in told}
    lost = 0
    for action in plan(90):
        told.clear()
        env.step(action)
        for index, infos, first in told:
            if not first:
                frames = {int(infos[name] - before[index][name]) for name in FRAMES}
                assert frames <= {1, 2, 3, 4}, "fewer than four where a life is lost"
                assert len(frames) == 1
                lost += int(infos["lives"] < before[index]["lives"])
            before[index] = infos
    assert lost >= 2


def test_those_of_the_step_that_ends_an_episode_are_among_those_of_its_end():
    env, told = told_by("serial")
    env.reset(seed=1)
    ended = 0
    for action in plan(90):
        told.clear()
        for index, last in env.step(action).infos.items():
            own = [(infos, first) for number, infos, first in told if number == index]
            assert [first for _, first in own] == [False, True], "of the end, and then of the next life"
            assert own[0][0]["game_over"] == last["game_over"]
            ended += 1
    assert ended


def test_a_restored_game_goes_on_telling_the_same():
    env, told = told_by("serial")
    other, again = told_by("serial")
    env.reset(seed=1)
    for action in plan(8):
        env.step(action)
    other.load_state_dict(through_checkpoint(env.state_dict()))
    assert again == []
    told.clear()
    for action in plan(20):
        env.step(action)
        other.step(action)
    assert told == again
