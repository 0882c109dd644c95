"""Dicts, tuples and masks of Gymnasium's envs: what policies see of them, and what is refused with which words."""

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_testing import make_run

from rlcore.errors import ConfigError, EnvError

spaces = gymnasium.spaces
HERE = __name__


class Game(gymnasium.Env):
    """Three moves, of which the one of the step is forbidden; ends after four steps, or is faulty at the second one."""

    def __init__(self, fault=None, actions=None, observed="box"):
        self.action_space = actions or spaces.Discrete(3)
        state = spaces.Box(0, 9, (2,), np.float32)
        masked = {"state": state, "action_mask": spaces.MultiBinary(3)}
        nested = {"state": state, "hand": spaces.Tuple([spaces.Discrete(10), state])}
        self.observation_space = {"box": state, "masked": spaces.Dict(masked), "nested": spaces.Dict(nested)}[observed]
        self.fault = fault
        self.observed = observed

    def _seen(self):
        state = np.full(2, self.time, np.float32)
        legal = np.arange(3) != self.time % 3
        faulty = self.time == 2
        if faulty and self.fault == "shape":
            state = state[:1]
        if faulty and self.fault == "none":
            legal[:] = False
        infos = {} if faulty and self.fault == "missing" else {"legal": legal.astype(np.int8)}
        if isinstance(self.action_space, spaces.MultiDiscrete):
            infos = {"legal": (infos["legal"], np.array([1, 0], np.int8))}
        if isinstance(self.action_space, spaces.MultiBinary):
            # the first bit alternates, the second is free, the third is 0
            must = np.array([1 - self.time % 2, 2, 0], np.int8)
            assert self.action_space.contains(self.action_space.sample(must))
            infos = {"legal": must if self.fault == "gymnasium" else np.stack([must != 1, must != 0], -1).ravel()}
        seen = {
            "box": state,
            "masked": {"state": state, "action_mask": legal.astype(np.int8)},
            "nested": {"state": state, "hand": (self.time, state)},
        }
        return seen[self.observed], infos

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._seen()

    def step(self, action):
        if isinstance(self.action_space, spaces.MultiBinary):
            assert (action[0], action[2]) == (1 - self.time % 2, 0), "a forbidden move"
        else:
            assert int(np.ravel(action)[0]) != self.time % 3, "a forbidden move"
        self.time += 1
        seen, infos = self._seen()
        ends = self.time == 4
        return seen, 0.0, ends, False, {} if ends else infos


gymnasium.register("packing/Game-v0", Game)


def collector(mask_key="legal", **kwargs):
    env = {"use": "gymnasium", "id": f"{HERE}:packing/Game-v0", "num_envs": 2, "kwargs": kwargs}
    env |= {} if mask_key is None else {"mask_key": mask_key}
    return make_run(sections={"env": env, "model": {"use": "mlp", "hidden": [4]}}).trainer.collector


@pytest.mark.parametrize("observed", ["box", "nested", "masked"])
def test_no_forbidden_move_is_taken_wherever_the_mask_is(observed):
    mine = collector(None if observed == "masked" else "legal", observed=observed)
    space = mine._spec.observation_space
    batch = mine.collect()
    name = "observation" if observed == "box" else "state"
    steps = space.tensor(batch["observation"], name)[..., 0].long()
    forbidden = torch.nn.functional.one_hot(steps % 3, 3)
    assert torch.equal(space.tensor(batch["observation"], "action_mask").long(), 1 - forbidden)
    if observed == "nested":
        assert set(space.leaves) == {"hand.0", "hand.1", "state", "action_mask"}
        assert torch.equal(space.tensor(batch["observation"], "hand.0"), steps)


def test_masks_of_several_choices_may_be_a_tuple(monkeypatch):
    monkeypatch.setattr(Game.__init__, "__defaults__", (None, spaces.MultiDiscrete([3, 2]), "box"))
    mine = collector()
    assert mine._spec.observation_space.choices == (3, 2)
    assert (mine.collect()["action"][..., 1] == 0).all()


def test_masks_of_bits_say_of_each_whether_it_may_be_0_and_whether_it_may_be_1(monkeypatch):
    monkeypatch.setattr(Game.__init__, "__defaults__", (None, spaces.MultiBinary(3), "box"))
    mine = collector()
    assert mine._spec.observation_space.choices == (2, 2, 2)
    action = mine.collect()["action"]
    assert (action.float().mean((0, 1))[1:] > torch.tensor([0.0, -1.0])).all()
    assert (action[..., 2] == 0).all()
    with pytest.raises(EnvError, match=r"one number for each bit.*np\.stack\(\[mask != 1, mask != 0\], -1\)\.ravel"):
        collector(fault="gymnasium").collect()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("none", "its action_mask allows no action; allow one, or end the episode there"),
        ("missing", r"its infos have no 'legal', which \[env\] mask_key names; there is nothing"),
        ("shape", r"leaf 'observation' of the observation: expected shape \(2,\), found \(1,\)"),
    ],
)
def test_what_an_env_may_not_do(fault, message):
    with pytest.raises(EnvError, match=message) as raised:
        collector(fault=fault).collect()
    assert "packing/Game-v0" in str(raised.value)


def test_a_mask_that_cannot_be_is_refused(monkeypatch):
    with pytest.raises(ConfigError, match=r"\[env\] mask_key = 'legal': the observations have a leaf 'action_mask'"):
        collector(observed="masked")
    monkeypatch.setattr(Game.__init__, "__defaults__", (None, spaces.Box(-1, 1, (3,)), "box"))
    with pytest.raises(ConfigError, match=r"\[env\] mask_key = 'legal': masks go with Discrete, MultiDiscrete and"):
        collector()
