"""Transforms of one leaf: what they change, what stays, what is refused."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.toy_dict import ToyDict

import rlcore
from rlcore.envs import OnLeaf, Packed, PassThrough, packed_env
from rlcore.errors import ConfigError, PluginError
from rlcore.types import Transform, defines

DICT = {"env": {"use": "testing:toy-dict"}, "model": {"use": "mlp", "hidden": [8]}}
SCALED = {"use": "gymnasium:observation-norm", "leaf": "state", "frames": 50}
STACKED = {"use": "transforms:frame-stack", "leaf": "frame", "frames": 3}


def run(*transforms, **sections):
    return make_run(sections={**DICT, "transform": list(transforms), **sections}).trainer


def test_leaves_change_and_others_stay():
    plain, changed = run().collector, run(SCALED, STACKED).collector
    before, after = plain._spec.observation_space, changed._spec.observation_space
    assert {name: leaf.shape for name, leaf in after.leaves.items()} == {
        "action_mask": (3,), "frame": (2, 6), "state": (3,),
    }  # fmt: skip
    assert (str(after.dtypes["frame"]), after.choices) == ("uint8", before.choices)
    batch = changed.collect()
    seen, following = (after.tensors(batch[key]) for key in ("observation", ("next", "observation")))
    begun = seen["frame"][:, 0]
    assert torch.equal(begun, begun[..., :2].repeat(1, 1, 3))  # the first observation, three times
    assert torch.equal(following["frame"][..., :4], seen["frame"][..., 2:])
    steps = seen["frame"][..., 0, 4].long()
    assert torch.equal(seen["action_mask"] == 0, torch.nn.functional.one_hot(steps % 3, 3).bool())
    first, *_ = changed._context.transforms
    state = seen["state"].numpy() * first.scale + first.loc
    np.testing.assert_allclose(10 * state[..., 0], steps, atol=1e-4)


class Strict(ToyDict):
    """Fails at a forbidden action."""

    def reset(self, seed=None):
        self.seen = super().reset(seed)
        return self.seen

    def step(self, action):
        assert self.seen["action_mask"][np.arange(len(action)), action].all(), "a forbidden action was taken"
        step = super().step(action)
        self.seen = step.observation
        return step


class Learning(PassThrough):
    """Takes one action again and again to see what it is worth."""

    def fit(self, env):
        self.seen = [env.reset(seed=0), *(env.step(np.array([0])).observation for _ in range(4))]

    def step(self, observation, first):
        return observation


def test_statistics_of_a_leaf_are_taken_with_allowed_actions():
    env = packed_env(Strict(Strict.Config(num_envs=1)))
    learning = Learning()
    OnLeaf(learning, env.spec.observation_space, "state").fit(env)
    assert [leaf.shape for leaf in learning.seen] == [(1, 3)] * 5


def test_statistics_can_be_taken_again():
    transform = run(STACKED, SCALED).collector._context.transforms[1]
    before = transform.loc
    transform.init_stats(20)
    assert transform.loc.shape == (3,)
    assert not np.array_equal(transform.loc, before)


def test_a_leaf_of_double_precision_is_seen_as_rows_hold_it():
    space = Packed({"wide": gymnasium.spaces.Box(-1, 1, (2,), np.float64)})
    assert space.held("wide") == gymnasium.spaces.Box(-1, 1, (2,), np.float32)


def test_copies_of_what_changes_a_leaf_are_whole():
    transform = run(STACKED).collector._context.transforms[0]
    space = transform._space_in
    rows, first = space.rows(2), np.ones(2, dtype=bool)
    expected = transform.step(rows, first)
    for copied in (copy.deepcopy(transform), pickle.loads(pickle.dumps(transform)), transform.frozen()):
        np.testing.assert_array_equal(copied.step(rows, first), expected)
    assert not defines(transform, Transform.action)


def test_an_agent_sees_leaves_as_the_policy_did(tmp_path):
    sections = {**DICT, "transform": [SCALED, STACKED], "checkpoint": {"use": "torch"}}
    make_run(sections=sections, folder=tmp_path).trainer.train()
    agent = rlcore.load_agent(tmp_path / "toy")
    assert agent.remembers
    mask = np.array([0, 1, 0], np.int8)
    observation = {"state": np.zeros(3, np.float32), "frame": np.zeros((2, 2), np.uint8), "action_mask": mask}
    assert agent.act(observation) == 1


def test_a_script_names_the_leaf_too():
    make = rlcore.Factory(total_frames=100)
    make.env("testing:toy-dict")
    make.transform("transforms:frame-stack", frames=2, leaf="frame")
    assert make.context.env_spec.observation_space.leaves["frame"].shape == (2, 4)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (
            {"transform": [{"use": "testing:toy"}]},
            r"\[\[transform\]\] 'toy'.*names no leaf.*'action_mask', 'frame', 'state'; say which: leaf = \"frame\"",
        ),
        (
            {"transform": [{"use": "testing:toy", "leaf": "stat"}]},
            r"\[\[transform\]\] 'toy' leaf = 'stat': .*no such leaf.*'action_mask', 'frame', 'state'.*mean 'state'",
        ),
        (
            {"transform": [{"use": "testing:toy", "leaf": "action_mask"}]},
            r"\[\[transform\]\] 'toy' leaf = 'action_mask': it says which actions are allowed",
        ),
        (
            {"transform": [{"use": "transforms:reward-scale", "leaf": "state"}]},
            r"\[\[transform\]\] 'reward-scale' leaf = 'state': this transform changes no observation",
        ),
        (
            {"env": {"use": "testing:toy"}, "transform": [{"use": "testing:toy", "leaf": "state"}]},
            r"\[\[transform\]\] 'toy' leaf = 'state': observations are one array here",
        ),
    ],
)
def test_what_a_config_may_not_say(sections, message):
    with pytest.raises(ConfigError, match=message) as raised:
        make_run(sections={**DICT, **sections})
    assert str(raised.value).count("[[transform]]") == 1


def test_a_leaf_of_another_shape_than_declared_is_an_error_of_the_transform():
    class Shrinking(PassThrough):
        def step(self, observation, first):
            return observation[:, :1]

    space = run().collector._spec.observation_space
    with pytest.raises(PluginError, match=r"Shrinking made \(2, 1\) of the leaf 'state'"):
        OnLeaf(Shrinking(), space, "state").step(space.rows(2), np.ones(2, dtype=bool))
