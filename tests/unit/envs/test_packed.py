"""Observations that are dicts, packed into rows: what stays what it is, and what is refused."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.toy_dict import ToyDict

from rlcore.envs import Packed, keeping_to_masks, packed_env, packed_space
from rlcore.errors import ConfigError, EnvError, PluginError

SPACES = {
    "image": gymnasium.spaces.Box(0, 255, (3, 2), np.uint8),
    "wide": gymnasium.spaces.Box(-1, 1, (3,), np.float64),
    "number": gymnasium.spaces.Discrete(5),
    "flags": gymnasium.spaces.Box(0, 1, (2,), bool),
}
DICT = {"env": {"use": "testing:toy-dict"}, "model": {"use": "mlp", "hidden": [8]}}


def rows():
    space = Packed(SPACES)
    space.seed(0)
    return space, np.stack([space.sample() for _ in range(4)])


def test_every_leaf_keeps_its_dtype_and_its_values():
    space, packed = rows()
    arrays = space.arrays(packed)
    assert {name: str(leaf.dtype) for name, leaf in arrays.items()} == {
        "image": "uint8", "wide": "float32", "number": "int64", "flags": "bool",
    }  # fmt: skip
    assert [leaf.shape for leaf in arrays.values()] == [(4, 3, 2), (4, 3), (4,), (4, 2)]
    again = space.rows(4)
    space.write(arrays, space.arrays(again))
    np.testing.assert_array_equal(again, packed)
    for name, leaf in space.tensors(torch.from_numpy(packed)).items():
        np.testing.assert_array_equal(leaf.numpy(), arrays[name])
    assert space.contains(packed[0])


def test_leaves_are_views():
    space, packed = rows()
    space.array(packed, "image")[:] = 7
    assert (space.tensor(torch.from_numpy(packed), "image") == 7).all()


def test_dicts_within_dicts_and_tuples_are_leaves_of_one_name():
    inner = gymnasium.spaces.Tuple([SPACES["number"], SPACES["image"]])
    nested = gymnasium.spaces.Dict(
        {"a": gymnasium.spaces.Dict({"b": inner, "c": SPACES["flags"]}), "d": SPACES["wide"]}
    )
    space = packed_space(nested, gymnasium.spaces.Discrete(2))
    assert list(space.leaves) == ["a.b.0", "a.b.1", "a.c", "d"]
    nested.seed(0)
    samples = [nested.sample() for _ in range(3)]
    leaves = space.arrays(np.stack([space.pack(sample) for sample in samples]))
    for row, sample in enumerate(samples):
        np.testing.assert_array_equal(leaves["a.b.0"][row], sample["a"]["b"][0])
        np.testing.assert_array_equal(leaves["a.b.1"][row], sample["a"]["b"][1])
        np.testing.assert_array_equal(leaves["a.c"][row], sample["a"]["c"])
    np.testing.assert_array_equal(space.pack(leaves), np.stack([space.pack(sample) for sample in samples]))
    broken = {"a": {"b": samples[0]["a"]["b"]}, "d": samples[0]["d"]}
    with pytest.raises(ValueError, match=r"expected the leaves .*'a.c'.*found \['a.b.0', 'a.b.1', 'd'\]"):
        space.pack(broken)


def test_two_leaves_of_one_name_are_refused():
    nested = gymnasium.spaces.Dict({"a": gymnasium.spaces.Dict(b=SPACES["flags"]), "a.b": SPACES["flags"]})
    with pytest.raises(ConfigError, match=r"\[env\] two leaves of the observations are called 'a.b'"):
        packed_space(nested, gymnasium.spaces.Discrete(2))


def test_a_copy_is_equal():
    space, _ = rows()
    assert copy.deepcopy(space) == pickle.loads(pickle.dumps(space)) == space
    assert space != space.with_leaf("number", gymnasium.spaces.Discrete(6))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image": np.zeros((2, 2), np.uint8)}, r"leaf 'image'.*expected shape \(3, 2\), found \(2, 2\)"),
        ({"image": np.full((3, 2), 0.5)}, r"leaf 'image'.*expected integers"),
        ({"more": np.zeros(1)}, r"expected the leaves .*, found .*'more'"),
    ],
)
def test_a_leaf_that_changes_is_refused(change, message):
    space, packed = rows()
    with pytest.raises(ValueError, match=message):
        space.pack({**space.arrays(packed[0]), **change})


def test_a_leaf_that_is_no_array_is_refused_with_the_wrapper_to_use():
    with pytest.raises(ConfigError, match=r"leaf 'pair'.*FlattenObservation"):
        Packed({"pair": gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(2)])})
    with pytest.raises(ConfigError, match=r"leaf 'words'.*TransformObservation"):
        Packed({"words": gymnasium.spaces.Graph(gymnasium.spaces.Discrete(2), None)})


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (gymnasium.spaces.Discrete(4), r"action_mask is MultiBinary\(3\); Discrete\(4\) takes one of shape \[4\]"),
        (gymnasium.spaces.MultiBinary(3), r"MultiBinary\(3\) takes one of shape \[6\].*a choice between 0 and 1"),
        (gymnasium.spaces.Box(-1, 1, (3,)), "goes with Discrete, MultiDiscrete and MultiBinary actions"),
    ],
)
def test_a_mask_has_to_fit_the_actions(actions, message):
    with pytest.raises(ConfigError, match=message):
        packed_space(gymnasium.spaces.Dict({"action_mask": gymnasium.spaces.MultiBinary(3)}), actions)


@pytest.mark.parametrize("actions", ["discrete", "numbered", "choices", "bits"])
def test_random_actions_keep_to_the_mask(actions):
    env = packed_env(ToyDict(ToyDict.Config(actions=actions, num_envs=4)))
    allowed = keeping_to_masks(env.spec)
    observation, space = env.reset(seed=0), env.spec.observation_space
    env.spec.action_space.seed(0)
    starts = np.ravel(getattr(env.spec.action_space, "start", 0))
    for _ in range(20):
        action = allowed(np.stack([env.spec.action_space.sample() for _ in range(4)]), observation)
        assert all(env.spec.action_space.contains(row) for row in action)
        begin, numbers = 0, action.reshape(4, -1).astype(np.int64) - starts
        for choice, size in enumerate(space.choices):
            mask = space.array(observation, "action_mask")[:, begin : begin + size]
            assert (np.take_along_axis(mask, numbers[:, choice, None], 1) == 1).all()
            begin += size
        observation = env.step(action).observation


def test_batches_hold_the_leaves_of_each_step():
    trainer = make_run(sections=DICT).trainer
    space = trainer.collector._spec.observation_space
    batch = trainer.collector.collect()
    seen, following = (space.tensors(batch[key]) for key in ("observation", ("next", "observation")))
    steps = (10 * seen["state"][..., 0]).round().long()
    assert steps.max() > 1
    assert torch.equal(seen["frame"][..., 0, 0].long(), steps)
    assert torch.equal(following["frame"][..., 1, 1].long(), steps + 1)
    ended = batch["next", "terminated"].squeeze(-1)
    assert torch.equal(following["action_mask"].sum(-1) == 0, ended)


class _Stuck(ToyDict):
    def _seen(self, state, ended=None):
        seen = super()._seen(state, ended)
        seen["action_mask"][state[:, 0] > 0.15] = 0
        return seen


def test_a_mask_without_an_allowed_action_is_an_error():
    env = packed_env(_Stuck(_Stuck.Config()))
    env.reset(seed=0)
    env.step(np.array([1, 1]))
    with pytest.raises(EnvError, match=r"'toy-dict'.*action_mask of env 0 allows no action"):
        env.step(np.array([0, 0]))


def test_a_policy_that_takes_a_forbidden_action_is_an_error():
    trainer = make_run(sections=DICT).trainer
    policy = trainer.model.policy
    policy._forward = lambda observation: torch.zeros(len(observation), 3).index_fill(1, torch.tensor([0]), 50.0)
    policy.refresh = lambda: None
    with pytest.raises(PluginError, match=r"action 0 at step 0 of the batch.*action_mask forbids; a model must keep"):
        trainer.collector.collect()
