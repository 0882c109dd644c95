"""The trainings that have a name of their own: one for each algorithm of the published plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rlcore_plugin_presets.training import Training


def preset(name: str, /, env: str | None = None, **keys: Any) -> Training:
    """Return a training of any installed preset or algorithm, as `rlcore init --list` shows them.

    Args:
        name: of a preset, or of an algorithm, whose preset the spaces of the environment choose.
        env: id of the environment.
        keys: those of `Training`, `name` of the run among them.
    """
    return Training(name, env, **keys)


class _Named(Training):
    algorithm: ClassVar[str]

    def __init__(
        self,
        env: str | None = None,
        *,
        name: str | None = None,
        overrides: Mapping[str, Any] | None = None,
        **keys: Any,
    ) -> None:
        super().__init__(self.algorithm, env, name=name, overrides=overrides, **keys)


class PPO(_Named):
    """Proximal policy optimisation: `rlcore.PPO("CartPole-v1").train(100_000)`."""

    algorithm = "ppo"


class A2C(_Named):
    """Advantage actor-critic: `rlcore.A2C("CartPole-v1").train(200_000)`."""

    algorithm = "a2c"


class DQN(_Named):
    """Deep Q-learning: `rlcore.DQN("CartPole-v1").train(100_000)`."""

    algorithm = "dqn"


class C51(_Named):
    """Distributional Q-learning: `rlcore.C51("CartPole-v1").train(100_000)`."""

    algorithm = "c51"


class SAC(_Named):
    """Soft actor-critic: `rlcore.SAC("Pendulum-v1").train(20_000)`."""

    algorithm = "sac"


class TD3(_Named):
    """Twin delayed deterministic policy gradient: `rlcore.TD3("Pendulum-v1").train(20_000)`."""

    algorithm = "td3"


class DDPG(_Named):
    """Deep deterministic policy gradient: `rlcore.DDPG("Pendulum-v1").train(20_000)`."""

    algorithm = "ddpg"


class CrossQ(_Named):
    """SAC without target networks: `rlcore.CrossQ("Pendulum-v1").train(20_000)`."""

    algorithm = "crossq"


class DiscreteSAC(_Named):
    """Soft actor-critic for discrete actions: `rlcore.DiscreteSAC("CartPole-v1").train(100_000)`."""

    algorithm = "discrete-sac"


class RecurrentPPO(_Named):
    """PPO with an LSTM, for what one observation does not show: `rlcore.RecurrentPPO("CartPole-v1").train(100_000)`."""

    algorithm = "recurrent-ppo"


class R2D2(_Named):
    """Q-learning with a memory: `rlcore.R2D2("CartPole-v1").train(100_000)`."""

    algorithm = "r2d2"
