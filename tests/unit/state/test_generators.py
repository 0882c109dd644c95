"""The global generators."""

from __future__ import annotations

import json
import random

import numpy as np
import torch

from rlcore.state.generators import GlobalGenerators, seed_all


def draws():
    return random.random(), float(np.random.rand()), float(torch.rand(())), random.gauss(0, 1)


def test_the_state_of_every_global_generator_is_saved_and_restored():
    from rlcore.state.tree import flatten, unflatten

    seed_all(5)
    draws()
    tensors = {}
    tree = json.loads(json.dumps(flatten(GlobalGenerators().state_dict(), "g", tensors)))
    expected = [draws() for _ in range(3)]
    seed_all(6)
    GlobalGenerators().load_state_dict(unflatten(tree, tensors))
    assert [draws() for _ in range(3)] == expected


def test_seeding_seeds_every_generator():
    seed_all(2**62)
    first = draws()
    seed_all(2**62)
    assert draws() == first
    seed_all(2**62 + 1)
    assert all(a != b for a, b in zip(draws(), first, strict=True))
