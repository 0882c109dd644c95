"""The sections of the small runs of these tests."""

from pathlib import Path

AROUND = {
    "env": {"use": "testing:toy", "actions": "discrete"},
    "model": {"use": "dqn:q-network", "hidden": [8]},
    "loss": {"use": "dqn"},
    "estimator": None,
    "buffer": {"use": "rollout", "minibatch_size": 8},
}
DISTRIBUTIONS = {"hidden": [8], "atoms": 11, "v_min": -3.0, "v_max": 3.0}
CATEGORICAL = {**AROUND, "model": {"use": "dqn:q-network", **DISTRIBUTIONS}}
C51 = {**CATEGORICAL, "loss": {"use": "dqn:c51"}}
QUANTILES = {"hidden": [8], "quantiles": 5}
QR = {**AROUND, "model": {"use": "dqn:q-network", **QUANTILES}, "loss": {"use": "dqn:qr-dqn"}}

SEQUENCES = {
    **AROUND,
    "plugins": {"files": [str(Path(__file__).with_name("loose_memory.py"))]},
    "env": {**AROUND["env"], "episode_lengths": [3, 26, 11]},
    "model": {"use": "loose-memory:values"},
    "loss": {"use": "dqn:r2d2", "gamma": 0.9},
    "buffer": {
        "use": "replay:sequences",
        "capacity": 400,
        "sequence_length": 5,
        "burn_in": 4,
        "overlap": 2,
        "n_steps": 3,
        "minibatch_size": 6,
        "warmup_frames": 32,
    },
}


def changed(sections, **model):
    """Return the sections with other keys of the model."""
    return {**sections, "model": {**sections["model"], **model}}
