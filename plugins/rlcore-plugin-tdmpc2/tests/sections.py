"""The sections of the small runs of these tests."""

MODEL = {
    "use": "tdmpc2",
    "latent_size": 8,
    "encoder_hidden": [6],
    "hidden": [10, 12],
    "simplex": 4,
    "critics": 3,
    "dropout": 0.1,
    "bins": 21,
    "samples": 24,
    "prior_samples": 4,
    "elites": 6,
    "iterations": 2,
    "random_frames": 0,
}
OPTIMIZERS = [
    {
        "name": "model",
        "use": "adam",
        "parameters": ["encoder", "dynamics", "reward", "critics"],
        "losses": ["loss_model"],
    },
    {"name": "prior", "use": "adam", "eps": 1e-5, "parameters": ["prior"], "losses": ["loss_prior"]},
]
BUFFER = {
    "use": "replay:sequences",
    "capacity": 200,
    "minibatch_size": 4,
    "sequence_length": 3,
    "burn_in": 0,
    "overlap": 2,
    "n_steps": 1,
    "alpha": 0.0,
    "updates_per_batch": 2,
    "warmup_frames": 32,
}
AROUND = {
    "env": {"use": "testing:toy", "actions": "bounded", "episode_lengths": [7, 13]},
    "model": MODEL,
    "loss": {"use": "tdmpc2"},
    "estimator": None,
    "optimizer": OPTIMIZERS,
    "buffer": BUFFER,
}
