"""Keywords of the named trainers, for editors and type checkers; their defaults are those of `Trainer` and recipes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    import torch


class TrainerArguments(TypedDict, total=False):
    """Those of `Trainer`, but for `collector` and `total_frames`, which are required, and `assembly`."""

    loss_module: Callable[[Any], Any] | Mapping[str, Callable[[Any], Any]] | None
    frame_skip: int | None
    optim_steps_per_batch: int | None
    optimizer: torch.optim.Optimizer | Mapping[str, torch.optim.Optimizer] | None
    optimization_stepper: Any
    logger: Any
    clip_grad_norm: bool
    clip_norm: float | None
    progress_bar: bool
    seed: int | None
    save_trainer_interval: int
    log_interval: int
    save_trainer_file: str | Path | None
    num_epochs: int | None
    async_collection: bool
    log_timings: bool
    auto_log_optim_steps: bool
    replay_buffer: Any
    target_net_updater: Any
    checkpoint: str | None
    checkpoint_rotation: Any
    checkpoint_metadata: Callable[[Any], Mapping[str, Any] | None] | None
    learner_backend: str
    batch_size: int | None
    learner_backend_options: Mapping[str, Any] | None
    learner_poll_interval: float
    hooks: Iterable[Any]
    evaluator: Any


class LoggingArguments(TrainerArguments, total=False):
    """What is logged."""

    enable_logging: bool
    log_rewards: bool
    log_observations: bool


class ContinuousArguments(LoggingArguments, total=False):
    """Those of `IQLTrainer` and `CQLTrainer`."""

    log_actions: bool


class KeyArguments(LoggingArguments, total=False):
    """Names of entries."""

    done_key: Any
    terminated_key: Any
    reward_key: Any
    episode_reward_key: Any
    action_key: Any
    observation_key: Any


class DDPGArguments(KeyArguments, total=False):
    """Those of `DDPGTrainer` and `SACTrainer`."""

    log_actions: bool


class OfflineToOnlineArguments(DDPGArguments, total=False):
    """Those of `OfflineToOnlineTrainer`."""

    anneal_frames: int | None


class DQNArguments(KeyArguments, total=False):
    """Those of `DQNTrainer`."""

    mixing_strategy: str | None
    aggregated_reward_key: Any
    aggregated_episode_reward_key: Any
    greedy_module: Any


class TD3Arguments(ContinuousArguments, total=False):
    """Those of `TD3Trainer`."""

    exploration_module: Any


class OnPolicyArguments(DDPGArguments, total=False):
    """Those of `A2CTrainer`, `PPOTrainer` and `ReinforceTrainer`."""

    gamma: float
    lmbda: float
    add_gae: bool
    gae: Any
    lr_scheduler: Any
    weight_update_map: Mapping[str, str] | None
