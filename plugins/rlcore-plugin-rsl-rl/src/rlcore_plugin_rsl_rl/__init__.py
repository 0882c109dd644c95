"""Envs with the interface of rsl_rl for rlcore, and the parts of its PPO."""

from rlcore import Component, hookimpl


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
