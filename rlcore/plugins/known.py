"""Where well-known components are found, and of which kind they are, to help a config that names one in vain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rlcore.errors import did_you_mean, nearest

# the distribution of each
WELL_KNOWN: Final = {
    "a2c": "rlcore-plugin-ppo",
    "action-clip": "rlcore-plugin-transforms",
    "action-scale": "rlcore-plugin-transforms",
    "c51": "rlcore-plugin-dqn",
    "csv": "rlcore-plugin-csv",
    "double-to-float": "rlcore-plugin-transforms",
    "dqn": "rlcore-plugin-dqn",
    "frame-stack": "rlcore-plugin-transforms",
    "gae": "rlcore-plugin-ppo",
    "gymnasium": "rlcore-plugin-gymnasium",
    "mlp": "rlcore-plugin-mlp",
    "mlflow": "rlcore-plugin-mlflow",
    "observation-norm": "rlcore-plugin-gymnasium",
    "ppo": "rlcore-plugin-ppo",
    "prioritized": "rlcore-plugin-replay",
    "replay": "rlcore-plugin-replay",
    "q-network": "rlcore-plugin-dqn",
    "reward-norm": "rlcore-plugin-transforms",
    "reward-scale": "rlcore-plugin-transforms",
    "reward-sum": "rlcore-plugin-transforms",
    "running-observation-norm": "rlcore-plugin-transforms",
    "step-counter": "rlcore-plugin-transforms",
    "tensorboard": "rlcore-plugin-tensorboard",
    "time-feature": "rlcore-plugin-transforms",
    "torch": "rlcore-plugin-torch",
    "torchsnapshot": "rlcore-plugin-torchsnapshot",
    "dcp": "rlcore-plugin-dcp",
    "video": "rlcore-plugin-video",
    "wandb": "rlcore-plugin-wandb",
    "workers": "rlcore-plugin-parallel",
}
OF_KIND: Final = {
    "buffer": ("prioritized", "replay"),
    "checkpointer": ("dcp", "torch", "torchsnapshot"),
    "collector": ("workers",),
    "env": ("gymnasium",),
    "estimator": ("gae",),
    "hook": ("video",),
    "logger": ("csv", "mlflow", "tensorboard", "wandb"),
    "loss": ("a2c", "c51", "dqn", "ppo"),
    "model": ("mlp", "q-network"),
    "transform": (
        "action-clip",
        "action-scale",
        "double-to-float",
        "frame-stack",
        "observation-norm",
        "reward-norm",
        "reward-scale",
        "reward-sum",
        "running-observation-norm",
        "step-counter",
        "time-feature",
    ),
}


def kinds_of(name: str) -> list[str]:
    """Return the kinds of which there is a well-known component of a name."""
    return [kind for kind, names in OF_KIND.items() if name in names]


def use_of(name: str) -> str:
    """Return what `use` says to name a well-known component, whichever plugins a config names besides."""
    plugin = WELL_KNOWN[name].removeprefix("rlcore-plugin-")
    return name if plugin == name else f"{plugin}:{name}"


def guess(kind: str, name: str, plugins: Iterable[str]) -> str:
    """Return `"; did you mean 'X'?"` for a component of that kind, or which well-known ones there are.

    Args:
        kind: of the component.
        name: that nothing has.
        plugins: names of installed plugins; one that is not well-known may provide what is like its name.
    """
    ours = {distribution.removeprefix("rlcore-plugin-") for distribution in WELL_KNOWN.values()} | {"core", "testing"}
    known = OF_KIND.get(kind, ())
    candidates = [*known, *(plugin for plugin in plugins if plugin not in ours)]
    if nearest(name, candidates) is not None or not known:
        return did_you_mean(name, candidates)
    return f"; well known: {', '.join(map(use_of, known))}"
