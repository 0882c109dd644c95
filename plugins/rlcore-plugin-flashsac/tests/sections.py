"""The sections of the small runs of these tests."""

FLASH = {
    "env": {"use": "testing:toy", "actions": "bounded"},
    "transform": [{"use": "flashsac:return-scale"}],
    "model": {
        "use": "flashsac:blocks",
        "width": 4,
        "critic_width": 6,
        "blocks": 1,
        "critic_blocks": 1,
        "atoms": 11,
        "random_frames": 0,
    },
    "loss": {"use": "flashsac:categorical-sac"},
    "estimator": None,
    "buffer": {"use": "rollout", "minibatch_size": 8},
}
SCALES = [{"use": "flashsac:return-scale"}, {"use": "flashsac:observation-scale"}]
REPLAY = {"use": "replay", "capacity": 60, "minibatch_size": 8, "updates_per_batch": 4, "warmup_frames": 16}
OF_PAPERS = {
    "flashsac": {},
    "xqc": {"block": "plain", "last_norm": False, "bounded": "weights"},
    "simbav2": {
        "block": "spherical",
        "norm": "none",
        "last_norm": False,
        "bounded": "weights",
        "observation_norm": True,
    },
    "bro": {
        "block": "residual",
        "norm": "layer",
        "expansion": 1,
        "last_norm": False,
        "bounded": "none",
    },
}


def around(model=None, loss=None, **sections):
    """Return the sections with other keys of the model and the loss, and the transforms that these need."""
    scales = {"transform": SCALES} if (model or {}).get("observation_norm") else {}
    return {
        **FLASH,
        **scales,
        "model": {**FLASH["model"], **(model or {})},
        "loss": {**FLASH["loss"], **(loss or {})},
        **sections,
    }


def paces():
    """Return three optimizers, of which those of actor and temperature step in every second update."""
    adam = {"use": "adam", "lr": 1e-3}
    return [
        {**adam, "name": "critics", "parameters": ["critics"], "losses": ["loss_critics"]},
        {**adam, "name": "actor", "parameters": ["actor"], "losses": ["loss_actor"], "every": 2},
        {**adam, "name": "temperature", "parameters": ["temperature"], "losses": ["loss_temperature"], "every": 2},
    ]
