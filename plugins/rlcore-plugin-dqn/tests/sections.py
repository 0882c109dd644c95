"""The sections of the small runs of these tests."""

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


def changed(sections, **model):
    """Return the sections with other keys of the model."""
    return {**sections, "model": {**sections["model"], **model}}
