"""The sections of the small runs of these tests."""

import numpy as np
from rlcore_plugin_datasets.dataset import write_dataset
from rlcore_plugin_datasets.recording import played
from rlcore_plugin_testing.toy import ToyEnv

MODEL = {
    "use": "mbpo",
    "hidden": [8],
    "random_frames": 0,
    "members": 3,
    "elites": 2,
    "dynamics_hidden": [8],
}
REPLAY = {
    "use": "mbpo:imagined-replay",
    "capacity": 60,
    "minibatch_size": 8,
    "updates_per_batch": 4,
    "warmup_frames": 16,
    "real_share": 0.25,
    "dynamics_every": 32,
    "dynamics_minibatch_size": 8,
    "dynamics_max_epochs": 3,
    "rollouts_every": 16,
    "rollouts": 20,
    "rollout_length": [1, 3, 0, 64],
    "imagined_capacity": 50,
    "range_margin": 3.0,
}
AROUND = {
    "env": {"use": "testing:toy", "actions": "bounded"},
    "model": MODEL,
    "loss": {"use": "sac"},
    "estimator": [],
    "buffer": REPLAY,
}


def around(model=None, buffer=None, **sections):
    """Return the sections with other keys of the model and the buffer."""
    return {**AROUND, "model": {**MODEL, **(model or {})}, "buffer": {**REPLAY, **(buffer or {})}, **sections}


DATASET = {
    **{key: value for key, value in REPLAY.items() if key not in ("capacity", "updates_per_batch", "warmup_frames")},
    "use": "mbpo:imagined-dataset",
    "updates_per_iteration": 8,
    "penalty": 0.5,
    "dynamics_every": 24,
}


def offline(path, **buffer):
    """Return the sections of a run on a dataset."""
    return around(
        run={"name": "toy", "seed": 1, "total_updates": 40, "device": "cpu"},
        collector=[],
        evaluator={"use": "episodes", "episodes": 2, "every": 16},
    ) | {"buffer": {**DATASET, "path": str(path), **buffer}}


def write_toy(folder):
    """Write random episodes of the toy env."""
    env = ToyEnv(ToyEnv.Config(num_envs=1, actions="bounded", reward="aim"))
    space = env.spec.action_space
    space.seed(0)
    episodes = played(env, lambda _: np.asarray(space.sample())[np.newaxis], lambda: None, range(20), 100)
    write_dataset(folder, (env.spec.observation_space, space), episodes, {})
    return folder
