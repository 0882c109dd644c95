"""SAC and TD3 on a task that only a memory solves: what the first observation says counts until the end."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from rlcore_plugin_testing import make_trainer

STEPS = 6


class Cue(gymnasium.Env):
    """Shows 1 or -1 at the beginning and 0 later; each step pays the action times that number."""

    observation_space = Box(-1, 1, (1,), np.float32)
    action_space = Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.cue = 0, float(self.np_random.choice([-1, 1]))
        return np.full(1, self.cue, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.zeros(1, np.float32), self.cue * float(action[0]), self.steps >= STEPS, False, {}


@pytest.fixture(autouse=True)
def _cue():
    gymnasium.register("Cue-v0", Cue)
    yield
    gymnasium.registry.pop("Cue-v0", None)


def mean_return(model, loss, optimizers, buffer):
    """Return the mean return of 40 episodes after a short training."""
    sections = {
        "env": {"use": "gymnasium", "id": "Cue-v0", "num_envs": 4},
        "model": {"hidden": [32], "random_frames": 400, **model},
        "loss": {"use": loss, "gamma": 0.8, "target_tau": 0.02},
        "estimator": None,
        "optimizer": optimizers,
        "collector": {"frames_per_batch": 8},
        "buffer": {"capacity": 4_000, "warmup_frames": 400, "updates_per_batch": 3, **buffer},
        "evaluator": {"use": "episodes", "every": 2_000, "episodes": 40, "at_start": False},
    }
    trainer = make_trainer("run.total_frames=2_000", sections=sections)
    trainer.train()
    assert trainer.progress.updates > 500
    return trainer.last_evaluation.mean_return


ONE = [{"use": "adam", "lr": 3e-3}]
DELAYED = [
    {"use": "adam", "name": "critics", "lr": 3e-3, "parameters": ["critics"], "losses": ["loss_critics"]},
    {"use": "adam", "name": "actor", "lr": 3e-3, "parameters": ["actor"], "losses": ["loss_actor"], "every": 2},
]
STOCHASTIC, DETERMINISTIC = ("sac", ONE, "stochastic"), ("sac:td3", DELAYED, "deterministic")


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        pytest.param(STOCHASTIC, "lstm", id="sac-lstm"),
        pytest.param(DETERMINISTIC, "gru", id="td3-gru"),
        pytest.param(STOCHASTIC, "gru", id="sac-gru", marks=pytest.mark.slow),
        pytest.param(DETERMINISTIC, "lstm", id="td3-lstm", marks=pytest.mark.slow),
    ],
)
def test_a_memory_keeps_what_the_first_observation_said(kind, cell):
    loss, optimizers, actor = kind
    model = {"use": "sac:recurrent-actor-critic", "cell": cell, "size": 16, "encoder_hidden": [], "actor": actor}
    buffer = {"use": "replay:sequences", "sequence_length": STEPS, "burn_in": 0, "n_steps": 1, "minibatch_size": 16}
    assert mean_return(model, loss, optimizers, {**buffer, "alpha": 0.0}) > 0.7 * STEPS


def test_without_a_memory_the_first_step_is_all_that_can_be_right():
    model = {"use": "sac:actor-critic"}
    found = mean_return(model, "sac", ONE, {"use": "replay", "minibatch_size": 96})
    assert found < 0.4 * STEPS
