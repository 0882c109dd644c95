"""Observations of several arrays at the entrance of a network."""

import gymnasium
import numpy as np
import torch
from rlcore_plugin_mlp.leaves import ActionMask, Flat, PackedEncoder, mask_of, seen_space
from rlcore_plugin_mlp.numbered import Bernoulli

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


BITS = Packed(
    {"seen": gymnasium.spaces.Box(-1, 1, (2,), np.float32), "action_mask": gymnasium.spaces.MultiBinary(8)}, [2] * 4
)
# of the four bits: free, must be 0, must be 1, and the last one is free; then all are free, and all must be 1
MASKS = [[1, 1, 1, 0, 0, 1, 1, 1], [1] * 8, [0, 1] * 4]


def masked_bits(logits, noise):
    """Return log-probabilities, entropies, samples and modes of masked bits, and the gradient `[row, bit]`."""
    space, distribution = gymnasium.spaces.MultiBinary((2, 2)), Bernoulli((2, 2))
    mask = mask_of(BITS, space)
    rows = BITS.pack({"seen": np.zeros((3, 2), np.float32), "action_mask": np.array(MASKS, np.int8)})
    seen = torch.from_numpy(rows)

    def terms(logits):
        parameters = mask(logits, seen)
        sampled = distribution.sample(parameters, noise)
        log_prob, entropy = distribution.log_prob_and_entropy(parameters, sampled)
        return (log_prob + 0.3 * entropy).sum(), (log_prob, entropy, sampled, distribution.mode(parameters))

    gradient, found = torch.func.grad(terms, has_aux=True)(logits)
    return (*found, gradient)


def test_masked_bits_are_certain_and_the_others_are_what_they_are():
    generator = torch.Generator().manual_seed(0)
    logits, noise = torch.randn(3, 4, generator=generator), Bernoulli((2, 2)).noise((3,), generator)
    log_prob, entropy, sampled, mode, gradient = masked_bits(logits, noise)
    free = torch.tensor([[True, False, False, True], [True] * 4, [False] * 4])
    bits = sampled.reshape(3, 4)
    for action in (bits, mode.reshape(3, 4)):
        assert action[0, 1:3].tolist() == [0, 1]
        assert action[2].tolist() == [1] * 4
    reference = torch.distributions.Bernoulli(logits=logits)
    torch.testing.assert_close(log_prob, (reference.log_prob(bits.float()) * free).sum(-1, keepdim=True))
    torch.testing.assert_close(entropy, (reference.entropy() * free).sum(-1, keepdim=True))
    assert torch.equal(gradient != 0, free)
    assert (float(log_prob[2]), float(entropy[2])) == (0, 0)


def test_masked_bits_are_the_same_in_a_compiled_update():
    generator = torch.Generator().manual_seed(1)
    logits, noise = torch.randn(3, 4, generator=generator), Bernoulli((2, 2)).noise((3,), generator)
    found = torch.compile(masked_bits, backend="aot_eager")(logits, noise)
    torch.testing.assert_close(found, masked_bits(logits, noise))
