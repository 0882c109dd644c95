"""The sections of the small runs of CrossQ and of discrete SAC."""

CROSSQ = {
    "env": {"use": "testing:toy", "actions": "bounded"},
    "model": {"use": "sac:crossq", "hidden": [8], "critic_hidden": [8], "random_frames": 0},
    "loss": {"use": "sac:crossq"},
    "estimator": None,
    "buffer": {"use": "rollout", "minibatch_size": 8},
}
DISCRETE = {
    "env": {"use": "testing:toy", "actions": "discrete"},
    "model": {"use": "sac:discrete-actor-critic", "hidden": [8], "random_frames": 0},
    "loss": {"use": "sac:discrete-sac"},
    "estimator": None,
    "buffer": {"use": "rollout", "minibatch_size": 8},
}
REPLAY = {"use": "replay", "capacity": 60, "minibatch_size": 8, "updates_per_batch": 4, "warmup_frames": 16}
