"""Observations of several arrays at the entrance of a network."""

import gymnasium
import numpy as np
import torch
from rlcore_plugin_mlp.leaves import ActionMask, Flat, PackedEncoder, seen_space

from rlcore.envs import Packed

SPACE = Packed(
    {
        "place": gymnasium.spaces.Discrete(3, start=2),
        "cards": gymnasium.spaces.MultiDiscrete([2, 3], start=[0, 1]),
        "speed": gymnasium.spaces.Box(-1, 1, (2,), np.float32),
        "action_mask": gymnasium.spaces.MultiBinary(2),
    },
    choices=[2],
)
ROWS = [
    {"place": 3, "cards": [1, 2], "speed": [0.5, -0.5], "action_mask": [1, 0]},
    {"place": 2, "cards": [0, 3], "speed": [0.0, 1.0], "action_mask": [1, 1]},
]


def observations():
    arrays = {name: np.array([row[name] for row in ROWS], dtype=SPACE.dtypes[name]) for name in SPACE.leaves}
    return torch.from_numpy(SPACE.pack(arrays))


def encoder():
    return PackedEncoder(SPACE, Flat(seen_space(SPACE)))


def test_leaves_stand_side_by_side_and_numbers_are_one_hot():
    seen = encoder()(observations())
    cards, place, speed = seen.tensor_split([5, 8], dim=1)  # a space of Gymnasium sorts its leaves by name
    assert place.tolist() == [[0, 1, 0], [1, 0, 0]]
    assert cards.tolist() == [[0, 1, 0, 1, 0], [1, 0, 0, 0, 1]]
    assert speed.tolist() == [[0.5, -0.5], [0.0, 1.0]]


def test_leaves_and_mask_are_one_graph_for_the_compiler():
    """As in a compiled update, where the loss is inside of a transform of gradients."""
    whole, mask = encoder(), ActionMask(SPACE)

    def gradient(weight, observation):
        def loss(weight):
            return mask(whole(observation) @ weight, observation).clamp(-10, 10).sum()

        return torch.func.grad(loss)(weight)

    compiled = torch.compile(gradient, backend="eager", fullgraph=True)
    weight = torch.ones(10, 2)
    assert torch.equal(compiled(weight, observations()), gradient(weight, observations()))
