"""The sections of the small runs of these tests."""

MODEL = {
    "use": "dreamer",
    "size": "1m",
    "deter": 16,
    "hidden": 8,
    "classes": 4,
    "units": 8,
    "depth": 2,
    "latents": 3,
    "blocks": 4,
}
AROUND = {
    "env": {"use": "testing:toy", "actions": "discrete", "episode_lengths": [7, 13]},
    "model": MODEL,
    "loss": {"use": "dreamer", "imagination": 3},
    "estimator": [],
    "optimizer": [{"use": "dreamer:laprop", "lr": 1e-3, "warmup": 0}],
    "buffer": {
        "use": "replay:sequences",
        "capacity": 200,
        "minibatch_size": 4,
        "sequence_length": 5,
        "burn_in": 0,
        "overlap": 2,
        "n_steps": 1,
        "alpha": 0.0,
        "updates_per_batch": 2,
        "warmup_frames": 16,
    },
}
NUMBERS = {**AROUND, "env": {**AROUND["env"], "actions": "bounded"}}


def around(model=None, loss=None, buffer=None, **sections):
    """Return the sections with other keys of the model, the loss and the buffer."""
    return {
        **AROUND,
        "model": {**MODEL, **(model or {})},
        "loss": {**AROUND["loss"], **(loss or {})},
        "buffer": {**AROUND["buffer"], **(buffer or {})},
        **sections,
    }


PIXELS = {
    **AROUND,
    "env": {"use": "testing:toy-pixels", "actions": "discrete", "episode_lengths": [7, 13]},
    "model": {**MODEL, "blocks": 2},
}
