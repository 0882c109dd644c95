"""The global generators."""

from __future__ import annotations

import json
import os
import random

import numpy as np
import pytest
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


@pytest.mark.cuda
def test_the_state_can_be_asked_for_in_a_process_forked_from_one_that_uses_cuda():
    torch.ones(1, device="cuda")
    assert len(GlobalGenerators().state_dict()["cuda"]) == torch.cuda.device_count()
    child = os.fork()
    if not child:
        os._exit(bool(GlobalGenerators().state_dict()["cuda"]))
    assert os.waitpid(child, 0)[1] == 0
