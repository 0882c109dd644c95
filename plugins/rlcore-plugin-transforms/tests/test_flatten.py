"""Flattened observations: equal to Gymnasium's own, with the mask apart."""

import gymnasium
import numpy as np
import pytest
from rlcore_plugin_testing import make_run
from rlcore_plugin_transforms.flatten import Flatten

from rlcore.envs import Packed, packed_space
from rlcore.errors import ConfigError
from rlcore.types.context import Context

spaces = gymnasium.spaces
LEAVES = {
    "cards": spaces.MultiDiscrete([2, 3], start=[0, 1]),
    "flags": spaces.MultiBinary((2, 2)),
    "image": spaces.Box(0, 255, (2, 3), np.uint8),
    "place": spaces.Discrete(4, start=2),
    "wide": spaces.Box(-1, 1, (2,), np.float64),
}
DISCRETE = spaces.Discrete(2)


def flatten():
    return Flatten(Flatten.Config(), Context.alone("flatten").for_component("transform", "flatten"))


def flattened(transform, observations):
    rows = transform.step(observations, np.ones(len(observations), dtype=bool))
    np.testing.assert_array_equal(rows, np.stack([transform.final(row, 0) for row in observations]))
    return rows


@pytest.mark.parametrize("name", LEAVES)
def test_one_array_is_flattened_as_gymnasium_does_it(name):
    space, transform = LEAVES[name], flatten()
    after = transform.observation_space(space)
    space.seed(0)
    samples = [space.sample() for _ in range(5)]
    expected = np.stack([spaces.flatten(space, sample) for sample in samples]).astype(after.dtype)
    np.testing.assert_array_equal(flattened(transform, np.stack(samples)), expected)
    assert all(after.contains(row) for row in expected)


@pytest.mark.parametrize("tuples", [False, True], ids=["dicts", "tuples"])
def test_nested_leaves_are_flattened_as_gymnasium_does_it(tuples):
    inner = spaces.Tuple(list(LEAVES.values())) if tuples else spaces.Dict(LEAVES)
    space = spaces.Tuple([inner, spaces.Discrete(3)]) if tuples else spaces.Dict({"a": inner, "b": spaces.Discrete(3)})
    packed, transform = packed_space(space, DISCRETE), flatten()
    assert list(packed.leaves)[:2] == (["0.0", "0.1"] if tuples else ["a.cards", "a.flags"])
    after = transform.observation_space(packed)
    space.seed(0)
    samples = [space.sample() for _ in range(5)]
    expected = np.stack([spaces.flatten(space, sample) for sample in samples]).astype(np.float32)
    found = flattened(transform, np.stack([packed.pack(sample) for sample in samples]))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert after.shape == spaces.flatten_space(space).shape


def test_a_mask_stays_apart():
    transform = flatten()
    before = Packed({"place": LEAVES["place"], "action_mask": spaces.MultiBinary(2)}, choices=[2])
    after = transform.observation_space(before)
    row = before.pack({"place": np.array(3), "action_mask": np.array([0, 1], np.int8)})
    leaves = after.arrays(flattened(transform, row[None]))
    assert (after.choices, list(after.leaves)) == ((2,), ["observation", "action_mask"])
    assert leaves["observation"].tolist() == [[0.0, 1.0, 0.0, 0.0]]
    assert leaves["action_mask"].tolist() == [[0, 1]]
    alone = Packed({"action_mask": spaces.MultiBinary(2)}, choices=[2])
    with pytest.raises(ConfigError, match=r"\[\[transform\]\] 'flatten': the observations have no leaf but"):
        transform.observation_space(alone)


def test_it_takes_dicts_whole_and_a_leaf_alone():
    around = {"env": {"use": "testing:toy-dict"}, "model": {"use": "mlp", "hidden": [8]}}
    for leaf, expected in (
        ({}, ["observation", "action_mask"]),
        ({"leaf": "frame"}, ["action_mask", "frame", "state"]),
    ):
        transform = [{"use": "transforms:flatten", **leaf}]
        collector = make_run(sections={**around, "transform": transform}).trainer.collector
        space = collector._spec.observation_space
        collector.collect()
        assert list(space.leaves) == expected
        assert {len(leaf.shape) for leaf in space.leaves.values()} == {1}


@pytest.mark.parametrize(("id_", "size"), [("FrozenLake-v1", 16), ("Blackjack-v1", 32 + 11 + 2)])
def test_envs_of_numbered_choices_are_one_hot_vectors(id_, size):
    env = {"use": "gymnasium", "id": id_, "num_envs": 2}
    sections = {"env": env, "model": {"use": "mlp", "hidden": [8]}, "transform": [{"use": "transforms:flatten"}]}
    trainer = make_run(sections=sections).trainer
    batch = trainer.collector.collect()
    assert batch["observation"].shape[2:] == (size,)
    assert batch["observation"].sum(-1).unique().tolist() == [1.0 if size == 16 else 3.0]
    trainer.train()
