"""Nothing that is trained depends on memory that was never written."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_testing import difference, make_run

RUN = {
    "model": {"use": "mlp", "hidden": [8]},
    "loss": {"use": "ppo", "normalize_advantage": True},
    "estimator": {"use": "ppo:gae", "standardise": True},
    "collector": {"use": "local", "frames_per_batch": 24},
}
ENVS = {
    "same_step": {"use": "testing:toy", "ends": ["terminated"], "episode_lengths": [3, 4]},
    "next_step": {"use": "testing:toy", "ends": ["terminated"], "episode_lengths": [2, 3], "reset_mode": "next_step"},
    "every step ends": {"use": "testing:toy", "ends": ["terminated"], "episode_lengths": [1]},
}


@pytest.fixture
def filled():
    """Fill whatever torch allocates with NaN."""
    torch.use_deterministic_algorithms(True)
    assert torch.utils.deterministic.fill_uninitialized_memory
    assert torch.empty(3).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


def weights(env):
    run = make_run("run.total_frames=96", sections={**RUN, "env": env})
    run.trainer.train()
    return {name: value.clone() for name, value in run.trainer.model.state_dict().items()}


@pytest.mark.parametrize("env", ENVS)
def test_a_run_is_the_same_whatever_was_in_memory(env, request):
    plain = weights(ENVS[env])
    request.getfixturevalue("filled")
    assert difference(weights(ENVS[env]), plain) is None
