"""The sections of the small runs of these tests."""

AROUND = {
    "env": {"use": "testing:toy", "actions": "bounded"},
    "model": {"use": "sac:actor-critic", "hidden": [8], "critics": 3, "quantiles": 5, "random_frames": 0},
    "loss": {"use": "tqc"},
    "estimator": None,
    "buffer": {"use": "rollout", "minibatch_size": 8},
}
REPLAY = {"use": "replay", "capacity": 60, "minibatch_size": 8, "updates_per_batch": 4, "warmup_frames": 16}
SEQUENCES = {
    **AROUND,
    "env": {**AROUND["env"], "episode_lengths": [7, 13]},
    "model": {
        **AROUND["model"],
        "use": "sac:recurrent-actor-critic",
        "size": 6,
        "encoder_hidden": [5],
    },
    "buffer": {
        "use": "replay:sequences",
        "capacity": 200,
        "minibatch_size": 4,
        "sequence_length": 4,
        "burn_in": 3,
        "overlap": 2,
        "n_steps": 2,
        "updates_per_batch": 2,
        "warmup_frames": 32,
    },
}


def around(model=None, loss=None, **sections):
    """Return the sections with other keys of the model and the loss."""
    return {
        **AROUND,
        "model": {**AROUND["model"], **(model or {})},
        "loss": {**AROUND["loss"], **(loss or {})},
        **sections,
    }
