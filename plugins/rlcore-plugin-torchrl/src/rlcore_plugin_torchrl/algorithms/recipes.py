"""What each algorithm takes and registers beyond `Trainer`: one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

_LOGGING: Final = {"enable_logging": True, "log_rewards": True, "log_observations": False}
_ACTIONS: Final = {"log_actions": True}
_KEYS: Final = {
    "done_key": "done",
    "terminated_key": "terminated",
    "reward_key": "reward",
    "episode_reward_key": "reward_sum",
    "action_key": "action",
    "observation_key": "observation",
}
_ADVANTAGES: Final = {"gamma": 0.99, "lmbda": 0.95, "add_gae": True, "gae": None}
_AGENTS: Final = {"mixing_strategy": None, "aggregated_reward_key": None, "aggregated_episode_reward_key": None}
_ALL_TOLD: Final = ("reward", "done", "terminated", "action")


@dataclass(frozen=True)
class Recipe:
    """An algorithm.

    Attributes:
        options: arguments beyond those of `Trainer`, with their defaults.
        episode_reward: entry of the rewards of episodes, where it is no option.
        epochs: passes over a batch by default.
        policy: where the loss module may have what the collector acts with.
        total: how the rewards of episodes become `r_total`.
        keys: entries that the loss module is told the names of.
        targets: whether target networks have to be moved.
        priorities: whether the buffer is told priorities after each loss; where a stepper does it, they are its own.
        ratio: whether updates per written step are logged.
    """

    options: Mapping[str, Any]
    episode_reward: str = "reward_sum"
    epochs: int = 1
    policy: tuple[str, ...] = ("actor_network",)
    total: Literal["max", "sum"] = "max"
    keys: tuple[str, ...] = ()
    targets: bool = True
    priorities: bool = True
    ratio: bool = True


def _on_policy(epochs: int) -> Recipe:
    options = {
        **_LOGGING,
        **_ACTIONS,
        **_KEYS,
        **_ADVANTAGES,
        "episode_reward_key": "reward",
        "lr_scheduler": None,
        "weight_update_map": None,
    }
    return Recipe(options, epochs=epochs, total="sum", keys=_ALL_TOLD, targets=False, ratio=False)


A2C: Final = _on_policy(epochs=1)
PPO: Final = _on_policy(epochs=4)
REINFORCE: Final = _on_policy(epochs=1)
DQN: Final = Recipe(
    {**_LOGGING, **_KEYS, **_AGENTS, "greedy_module": None}, policy=("value_network", "local_value_network")
)
DDPG: Final = Recipe({**_LOGGING, **_ACTIONS, **_KEYS}, keys=("reward", "done", "terminated"))
SAC: Final = Recipe({**_LOGGING, **_ACTIONS, **_KEYS}, keys=_ALL_TOLD)
IQL: Final = Recipe({**_LOGGING, **_ACTIONS})
CQL: Final = Recipe({**_LOGGING, **_ACTIONS})
TD3: Final = Recipe(
    {**_LOGGING, **_ACTIONS, "exploration_module": None},
    episode_reward="reward",
    total="sum",
    priorities=False,
)
