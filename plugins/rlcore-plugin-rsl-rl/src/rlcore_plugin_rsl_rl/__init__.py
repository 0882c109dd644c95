"""Envs with the interface of rsl_rl for rlcore, the parts of its PPO, and its runner's call for rlcore's loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore import Component, hookimpl
from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore_plugin_rsl_rl.runner import OnPolicyRunner as OnPolicyRunner

__all__, __getattr__, __dir__ = lazy(__name__, {"rlcore_plugin_rsl_rl.runner": "OnPolicyRunner"})


@hookimpl
def provide_components() -> list[Component]:
    """Return the components of this plugin."""
    return [
        Component("env", "rsl-rl", f"{__name__}.env:RslRlEnv", summary="a VecEnv of rsl_rl, on the device of the run"),
        Component(
            "model",
            "rsl-rl",
            f"{__name__}.model:RslRlModel",
            summary="an actor and a critic that see different groups of observations",
        ),
        Component(
            "loss",
            "adaptive-ppo",
            f"{__name__}.loss:AdaptivePPOLoss",
            summary="PPO with the learning rate that keeps to a divergence",
        ),
        Component("hook", "env-log", f"{__name__}.env_log:EnvLog", summary="logs what a VecEnv has in extras['log']"),
    ]
