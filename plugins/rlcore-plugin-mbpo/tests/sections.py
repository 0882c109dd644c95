"""The sections of the small runs of these tests."""

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
