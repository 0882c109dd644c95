"""What JAX envs are made of may draw from the global generators, as JAX itself does when it is imported."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from rlcore_plugin_jax.env import Config, make

from rlcore.types import Context

pytest.importorskip("jax")

DRAWS = """
import random, numpy, torch
from jax_envs import Drift

random.random(), numpy.random.rand(), torch.rand(1)
"""


def states():
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()


def test_an_import_that_draws_leaves_the_global_generators_as_they_were(tmp_path, monkeypatch):
    """So a run in a process that imported the same earlier draws the same."""
    (tmp_path / "draws_at_import.py").write_text(DRAWS)
    for folder in (tmp_path, Path(__file__).parent):
        monkeypatch.syspath_prepend(str(folder))
    expected = states()
    make(Config(id="draws_at_import:Drift"), Context.alone("tests")).close()
    assert states() == expected
