"""The sections of the small runs of these tests."""

AROUND = {
    "env": {"use": "testing:toy", "actions": "bounded"},
    "model": {"use": "sac:actor-critic", "hidden": [8], "random_frames": 0},
    "loss": {"use": "sac"},
    "estimator": None,
    "buffer": {"use": "rollout", "minibatch_size": 8},
}
REPLAY = {"use": "replay", "capacity": 60, "minibatch_size": 8, "updates_per_batch": 4, "warmup_frames": 16}
DROPOUT = {"use": "sac:actor-critic", "hidden": [8, 8], "norm": "layer", "dropout": 0.25, "random_frames": 0}

DETERMINISTIC = {
    **AROUND,
    "model": {**AROUND["model"], "actor": "deterministic"},
    "loss": {"use": "sac:td3"},
}
ONE_CRITIC = {**DETERMINISTIC, "model": {**DETERMINISTIC["model"], "critics": 1}, "loss": {"use": "sac:ddpg"}}


def around(model=None, loss=None, **sections):
    """Return the sections with other keys of the model and the loss."""
    return {
        **AROUND,
        "model": {**AROUND["model"], **(model or {})},
        "loss": {**AROUND["loss"], **(loss or {})},
        **sections,
    }
