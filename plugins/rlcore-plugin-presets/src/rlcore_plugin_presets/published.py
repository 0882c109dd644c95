"""Which presets are published, by the plugin that brings them and by algorithm, whether it is installed or not."""

from __future__ import annotations

from typing import Final

# by the name of the plugin; its distribution is `rlcore-plugin-NAME`
PUBLISHED: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "dqn": {
        "c51": ("c51-classic-control", "c51-generic"),
        "dqn": ("dqn-atari", "dqn-classic-control", "dqn-generic"),
        "qr-dqn": ("qr-dqn-generic",),
        "r2d2": ("r2d2-generic",),
        "rainbow": ("rainbow-generic",),
    },
    "dreamer": {"dreamer": ("dreamer-generic",)},
    "flashsac": {
        "bronet": ("bronet-generic",),
        "flashsac": ("flashsac-generic", "flashsac-mujoco"),
        "simbav2": ("simbav2-generic",),
        "xqc": ("xqc-generic",),
    },
    "mbpo": {"mbpo": ("mbpo-generic",), "mopo": ("mopo-generic",)},
    "offline": {
        "bc": ("bc-generic",),
        "cql": ("cql-generic",),
        "discrete-cql": ("discrete-cql-generic",),
        "iql": ("iql-generic",),
        "td3-bc": ("td3-bc-generic",),
    },
    "ppo": {
        "a2c": ("a2c-classic-control", "a2c-generic"),
        "ppo": ("ppo-atari", "ppo-classic-control", "ppo-generic", "ppo-mujoco"),
        "recurrent-ppo": ("recurrent-ppo-generic",),
    },
    "pqn": {"pqn": ("pqn-classic-control", "pqn-generic", "pqn-minatar")},
    "sac": {
        "crossq": ("crossq-generic",),
        "ddpg": ("ddpg-generic",),
        "discrete-sac": ("discrete-sac-generic",),
        "droq": ("droq-generic",),
        "recurrent-sac": ("recurrent-sac-generic",),
        "redq": ("redq-generic",),
        "sac": ("sac-generic", "sac-mujoco"),
        "td3": ("td3-generic",),
    },
    "tdmpc2": {"tdmpc2": ("tdmpc2-generic",)},
    "vtrace": {"appo": ("appo-generic",), "impala": ("impala-generic",)},
}


def distributions() -> dict[str, str]:
    """Return the distribution of each published preset, and of each algorithm that has some."""
    return {
        name: f"rlcore-plugin-{plugin}"
        for plugin, algorithms in PUBLISHED.items()
        for algorithm, presets in algorithms.items()
        for name in (algorithm, *presets)
    }
