"""The runs that `kills.py` kills: one per way to learn, as small as can be and still with ends of episodes."""

from __future__ import annotations

from typing import Any, Final

Sections = dict[str, Any]

BASE: Final[Sections] = {
    "run": {"seed": 3, "total_frames": 4_000, "device": "cpu"},
    "optimizer": [{"use": "adam", "lr": 1e-3}],
    "collector": {"frames_per_batch": 32},
    "evaluator": {"use": "episodes", "every": 128, "episodes": 1},
    "checkpoint": {"use": "torch"},
}
CARTPOLE: Final[Sections] = {"use": "gymnasium", "id": "CartPole-v1", "num_envs": 2}
# the pendulum's episodes never end by themselves
PENDULUM: Final[Sections] = {"use": "gymnasium", "id": "Pendulum-v1", "max_episode_steps": 50}
# a game is cut off after 20 steps of 4 frames
PONG: Final[Sections] = {"use": "atari", "game": "pong", "num_envs": 2, "size": 42, "noop_max": 4, "max_frames": 80}
BLIND: Final = [{"use": "transforms:select", "indices": [0, 2]}]
# forked, as workers that import everything themselves take seconds to start; they are processes all the same
WORKERS: Final[Sections] = {
    "use": "parallel:workers",
    "num_workers": 2,
    "processes": "always",
    "start_method": "fork",
    "frames_per_batch": 32,
}


def _adam(part: str, every: int = 1) -> Sections:
    return {"use": "adam", "name": part, "parameters": [part], "losses": [f"loss_{part}"], "every": every}


def _continuous(model: Sections, loss: str, every: int, *, temperature: bool = True, **buffer: Any) -> Sections:
    """Return a run whose actor learns once in `every` updates, so that some kills fall between two of its steps."""
    return {
        "env": PENDULUM,
        "model": {"hidden": [16], "random_frames": 64, **model},
        "loss": {"use": loss},
        "optimizer": [_adam("critics"), _adam("actor", every), *([_adam("temperature", every)] if temperature else [])],
        "buffer": {
            "use": "replay",
            "capacity": 300,
            "minibatch_size": 16,
            "updates_per_batch": 8,
            "warmup_frames": 64,
            **buffer,
        },
    }


PPO: Final[Sections] = {
    "loss": {"use": "ppo"},
    "estimator": {"use": "gae"},
    "buffer": {"minibatch_size": 16, "epochs": 2},
}
LSTM: Final[Sections] = {
    "env": CARTPOLE,
    "transform": BLIND,
    "model": {"use": "recurrent:lstm", "size": 16, "encoder_hidden": [16]},
    "loss": {"use": "ppo"},
    "estimator": {"use": "gae"},
    "buffer": {"use": "rollout-sequences", "sequence_length": 8, "minibatch_size": 16, "epochs": 2},
}
R2D2: Final[Sections] = {
    "env": CARTPOLE,
    "transform": BLIND,
    "model": {"use": "dqn:recurrent-q-network", "size": 16, "encoder_hidden": [16]},
    "loss": {"use": "dqn:r2d2", "target_interval": 7},
    "buffer": {
        "use": "replay:sequences",
        "capacity": 400,
        "minibatch_size": 4,
        "sequence_length": 8,
        "burn_in": 4,
        "overlap": 4,
        "n_steps": 3,
        "updates_per_batch": 4,
        "warmup_frames": 64,
    },
}
# short sequences that begin at every step, all alike
STEPS: Final[Sections] = {
    "use": "replay:sequences",
    "capacity": 400,
    "minibatch_size": 4,
    "sequence_length": 3,
    "burn_in": 0,
    "overlap": 2,
    "n_steps": 1,
    "alpha": 0.0,
    "updates_per_batch": 4,
    "warmup_frames": 64,
}
DREAMER: Final[Sections] = {
    "env": CARTPOLE,
    "model": {
        "use": "dreamer",
        "size": "1m",
        "deter": 16,
        "hidden": 8,
        "classes": 4,
        "units": 8,
        "latents": 3,
        "blocks": 4,
    },
    "loss": {"use": "dreamer", "imagination": 3},
    "optimizer": [{"use": "dreamer:laprop", "lr": 1e-3, "warmup": 0}],
    "buffer": {**STEPS, "sequence_length": 6},
}
TDMPC2: Final[Sections] = {
    "env": PENDULUM,
    "model": {
        "use": "tdmpc2",
        "latent_size": 8,
        "encoder_hidden": [8],
        "hidden": [16],
        "simplex": 4,
        "samples": 24,
        "prior_samples": 4,
        "elites": 6,
        "iterations": 2,
        "random_frames": 64,
    },
    "loss": {"use": "tdmpc2"},
    "optimizer": [
        {**_adam("model"), "parameters": ["encoder", "dynamics", "reward", "critics"]},
        {**_adam("prior"), "eps": 1e-5},
    ],
    "buffer": STEPS,
}
# what the data of a run are recorded to, by random actions
DATA: Final = "data"
IQL: Final[Sections] = {
    "env": PENDULUM,
    "model": {"use": "offline:iql", "hidden": [16], "random_frames": 0},
    "loss": {"use": "offline:iql"},
}
DYNAMICS: Final[Sections] = {
    "use": "mbpo",
    "members": 3,
    "elites": 2,
    "dynamics_hidden": [16],
    "termination": "never",
}
IMAGINED: Final[Sections] = {"rollouts": 64, "rollout_length": 2, "dynamics_minibatch_size": 16}
ATARI: Final[Sections] = {
    "env": PONG,
    "model": {"use": "dqn:q-network", "encoder": "rlcore_plugin_cnn.bodies:NatureCNN", "hidden": []},
    "loss": {"use": "dqn", "target_interval": 7},
    "collector": {"frames_per_batch": 64},
    "buffer": {
        "use": "replay",
        "capacity": 200,
        "stack": 4,
        "minibatch_size": 8,
        "updates_per_batch": 2,
        "warmup_frames": 128,
    },
    "hook": [{"use": "reward-clip"}],
}
TENSORS: Final[Sections] = {
    "env": {"use": "torch-envs", "id": "CartPole-v1", "num_envs": 8},
    "collector": {"use": "device", "frames_per_batch": 64},
    "estimator": {"use": "ppo:gae"},
}
RUNS: Final[dict[str, Sections]] = {
    "SAC": _continuous({"use": "sac:actor-critic"}, "sac:sac", 2),
    "SAC, replay in mapped files": _continuous({"use": "sac:actor-critic"}, "sac:sac", 2, storage="memmap"),
    "TD3": _continuous({"use": "sac:actor-critic", "actor": "deterministic"}, "sac:td3", 2, temperature=False),
    "CrossQ": _continuous({"use": "sac:crossq", "critic_hidden": [16], "norm_warmup": 50}, "sac:crossq", 3),
    "TQC": _continuous({"use": "sac:actor-critic", "quantiles": 5}, "tqc", 2),
    "FlashSAC, with a reset": {
        **_continuous({}, "flashsac:categorical-sac", 2),
        "model": {"use": "flashsac:blocks", "width": 8, "critic_width": 16, "random_frames": 64},
        "transform": [{"use": "flashsac:return-scale"}],
        "hook": [{"use": "flashsac:resets", "at": [320]}],
    },
    "QR-DQN, prioritized, noisy": {
        "env": CARTPOLE,
        "model": {"use": "dqn:q-network", "hidden": [16], "quantiles": 8, "duelling": True, "noisy": True},
        "loss": {"use": "dqn:qr-dqn", "target_interval": 7},
        "scheduler": [{"use": "linear", "target": "buffer.beta", "final": 2.0}],
        "buffer": {
            "use": "replay:prioritized",
            "capacity": 300,
            "n_steps": 3,
            "minibatch_size": 16,
            "updates_per_batch": 8,
            "warmup_frames": 64,
        },
    },
    "PPO with an LSTM": LSTM,
    "PPO with an LSTM, two workers": {**LSTM, "collector": WORKERS},
    "R2D2": R2D2,
    "R2D2, two workers": {**R2D2, "collector": WORKERS},
    "DQN on Pong, stacked replay": ATARI,
    "DQN on Pong, stacked replay, two workers": {**ATARI, "collector": {**WORKERS, "frames_per_batch": 64}},
    "IQL from a dataset": {
        **IQL,
        "run": {"seed": 3, "total_updates": 4_000, "device": "cpu"},
        "collector": [],
        "evaluator": {"use": "episodes", "every": 64, "episodes": 1},
        "buffer": {"use": "datasets:dataset", "path": DATA, "minibatch_size": 16, "updates_per_iteration": 16},
    },
    "IQL, offline to online": {
        **IQL,
        "buffer": {
            "use": "datasets:mixed",
            "path": DATA,
            "offline_updates": 64,
            "offline_updates_per_batch": 16,
            "capacity": 300,
            "minibatch_size": 16,
            "updates_per_batch": 8,
            "warmup_frames": 64,
        },
        "hook": [{"use": "datasets:record"}],
    },
    "MBPO": _continuous(
        DYNAMICS, "sac:sac", 2, use="mbpo:imagined-replay", dynamics_every=128, rollouts_every=64, **IMAGINED
    ),
    "MOPO": {
        **_continuous({**DYNAMICS, "random_frames": 0}, "sac:sac", 2),
        "run": {"seed": 3, "total_updates": 4_000, "device": "cpu"},
        "collector": [],
        "evaluator": {"use": "episodes", "every": 64, "episodes": 1},
        "buffer": {
            "use": "mbpo:imagined-dataset",
            "path": DATA,
            "minibatch_size": 16,
            "updates_per_iteration": 16,
            "dynamics_every": 64,
            "rollouts_every": 32,
            **IMAGINED,
        },
    },
    "DreamerV3": DREAMER,
    "TD-MPC2": TDMPC2,
    "PPO, two ranks": {**PPO, "env": CARTPOLE, "model": {"use": "mlp", "hidden": [16]}, "ranks": {"count": 2}},
    "PPO, two policies, two ranks": {
        **PPO,
        "env": {"use": "pettingzoo", "id": "mpe2.simple_tag_v3", "num_envs": 8, "kwargs": {"max_cycles": 10}},
        "model": {
            "hunters": {"use": "mlp", "hidden": [16], "agents": ["adversary_*"]},
            "prey": {"use": "mlp", "hidden": [8], "agents": ["agent_*"]},
        },
        "collector": {"frames_per_batch": 64},
        "buffer": {**PPO["buffer"], "minibatch_size": 8},
        "evaluator": {"use": "episodes", "every": 256, "episodes": 4},
        "ranks": {"count": 2},
    },
    "PPO, envs of tensors": {**PPO, **TENSORS, "model": {"use": "mlp", "hidden": [16]}},
    "PQN, envs of tensors": {
        **TENSORS,
        "model": {"use": "pqn:normed-q-network", "hidden": [16]},
        "loss": {"use": "pqn"},
        "optimizer": [{"use": "radam", "lr": 1e-3}],
        "buffer": PPO["buffer"],
    },
    "TD3, compiled": {
        **_continuous({"use": "sac:actor-critic", "actor": "deterministic"}, "sac:td3", 2, temperature=False),
        "learner": {"compile": True},
    },
}
