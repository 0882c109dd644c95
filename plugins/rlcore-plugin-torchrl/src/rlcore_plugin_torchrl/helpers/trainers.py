"""A whole trainer from its parts and a settings object."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Protocol

import torch
from torch import nn

from rlcore import (
    BatchSubSampler,
    ClearCudaCache,
    CountFramesLog,
    LogValidationReward,
    RewardNormalizer,
    SelectKeys,
    TargetNetUpdaterHook,
    Trainer,
)
from rlcore.collectors import UpdatesPolicyWeights
from rlcore.errors import ConfigError, NotSupportedError, did_you_mean
from rlcore.types import Stepping, offers, policy_of
from rlcore_plugin_torchrl.helpers.settings import as_dict, setting
from rlcore_plugin_torchrl.hooks.log_scalar import LogScalar
from rlcore_plugin_torchrl.hooks.lr_scheduler import LRSchedulerHook
from rlcore_plugin_torchrl.hooks.replay_buffer import ReplayBufferTrainer
from rlcore_plugin_torchrl.hooks.update_weights import UpdateWeights
from rlcore_plugin_torchrl.protocols import ClockFollower, LogsHparams, UpdatesModel

if TYPE_CHECKING:
    from rlcore.types import Key

DEFAULTS: Final[Mapping[str, Any]] = {
    "optim_steps_per_batch": 500,
    "optimizer": "adam",
    "lr_scheduler": "cosine",
    "selected_keys": None,
    "batch_size": 256,
    "log_interval": 10_000,
    "lr": 3e-4,
    "weight_decay": 0.0,
    "clip_norm": 1000.0,
    "clip_grad_norm": False,
    "normalize_rewards_online": False,
    "normalize_rewards_online_scale": 1.0,
    "normalize_rewards_online_decay": 0.9999,
    "sub_traj_len": -1,
    "noisy": False,
    "frame_skip": 1,
    "frames_per_batch": 1000,
    "total_frames": 50_000_000,
    "record_frames": 1000,
    "record_interval": 1000,
    "recorder_log_keys": (("next", "reward"),),
}
_REWARD: Final[Key] = ("next", "reward")


def make_trainer(
    collector: Any,
    loss_module: nn.Module,
    recorder: Any = None,
    target_net_updater: Any = None,
    policy_exploration: Any = None,
    replay_buffer: Any = None,
    logger: Any = None,
    cfg: object = None,
) -> Trainer:
    """Return a trainer with an optimizer, a schedule and the hook objects that the settings ask for.

    It samples minibatches from the replay buffer, or else from the batch itself. After each step it moves the learning
    rate and the targets. After each iteration it sends the weights to a collector that takes them.

    Args:
        collector: as for `Trainer`.
        loss_module: as for `Trainer`; it has parameters.
        recorder: an env with `rollout`, in which the policy is tried out with and without exploration.
        target_net_updater: has `step()`, called after each optimisation step.
        policy_exploration: the policy for the recorder; its `step(frames=...)`, where it has one, is called after each
            iteration; or a model of rlcore, whose exploration then follows the frames of this trainer.
        replay_buffer: has `extend` and `sample`.
        logger: as for `Trainer`; its `log_hparams`, where it has one, gets the settings.
        cfg: settings; what they lack is as in `DEFAULTS`. None for a short run of 1000 frames.

    Raises:
        ConfigError: an unknown `optimizer` or `lr_scheduler`, or a loss without parameters.

    Example:
        trainer = make_trainer(collector, loss_module, cfg=SimpleNamespace(total_frames=100_000, lr=1e-3))
        trainer.train()
    """
    if cfg is None:
        warnings.warn("make_trainer without cfg: a short run for trying things out", stacklevel=2)
        cfg = SimpleNamespace(total_frames=1000, record_frames=10, record_interval=10)
    chosen = SimpleNamespace(**{name: setting(cfg, name, default) for name, default in DEFAULTS.items()})
    optimizer = _optimizer(loss_module, chosen)
    schedule = _schedule(optimizer, chosen)
    if offers(logger, LogsHparams):
        logger.log_hparams(as_dict(cfg))
    trainer = _bare(collector, loss_module, optimizer, logger, chosen)
    _before_optimisation(trainer, loss_module, chosen)
    _minibatches(trainer, replay_buffer, next(loss_module.parameters()).device, chosen)
    _after_each_step(trainer, schedule, target_net_updater)
    if chosen.normalize_rewards_online:
        scale, decay = chosen.normalize_rewards_online_scale, chosen.normalize_rewards_online_decay
        RewardNormalizer(scale=scale, decay=decay).register(trainer)
    _explore(trainer, policy_exploration, chosen)
    trainer.register_op("post_steps_log", lambda batch: {"lr": optimizer.param_groups[0]["lr"]})
    if recorder is not None:
        _recorders(trainer, recorder, policy_exploration, chosen)
    if offers(collector, UpdatesPolicyWeights) or offers(collector, UpdatesModel):
        UpdateWeights(collector, 1).register(trainer)  # others act with the weights of the learner
    LogScalar().register(trainer)
    CountFramesLog(frame_skip=chosen.frame_skip).register(trainer)
    return trainer


def _bare(collector: Any, loss_module: nn.Module, optimizer: Any, logger: Any, chosen: Any) -> Trainer:
    """Return the trainer without its operations."""
    return Trainer(
        collector=collector,
        frame_skip=chosen.frame_skip,
        total_frames=chosen.total_frames * chosen.frame_skip,
        loss_module=loss_module,
        optimizer=optimizer,
        logger=logger,
        log_interval=chosen.log_interval,
        optim_steps_per_batch=chosen.optim_steps_per_batch,
        clip_grad_norm=chosen.clip_grad_norm,
        clip_norm=chosen.clip_norm,
    )


def _optimizer(loss_module: nn.Module, chosen: Any) -> torch.optim.Optimizer:
    kinds: dict[str, Callable[..., torch.optim.Optimizer]] = {
        "adam": torch.optim.Adam,
        "sgd": torch.optim.SGD,
        "adamax": torch.optim.Adamax,
    }
    if chosen.optimizer not in kinds:
        raise NotSupportedError(
            f"optimizer = {chosen.optimizer!r} must be one of {', '.join(kinds)}{did_you_mean(chosen.optimizer, kinds)}"
        )
    parameters = list(loss_module.parameters())
    if not parameters:
        raise ConfigError(f"loss_module: a {type(loss_module).__name__} has no parameters to optimise")
    further = {"betas": (0.0, 0.9)} if chosen.optimizer == "adam" else {}
    return kinds[chosen.optimizer](parameters, lr=chosen.lr, weight_decay=chosen.weight_decay, **further)


def _schedule(optimizer: torch.optim.Optimizer, chosen: Any) -> Any:
    if chosen.lr_scheduler == "":
        return None
    if chosen.lr_scheduler != "cosine":
        raise NotSupportedError(f"lr_scheduler = {chosen.lr_scheduler!r} must be 'cosine', or '' for none")
    steps = int(chosen.total_frames / chosen.frames_per_batch * chosen.optim_steps_per_batch)
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(1, steps))


def _before_optimisation(trainer: Trainer, loss_module: nn.Module, chosen: Any) -> None:
    if torch.cuda.device_count() > 0:
        ClearCudaCache(1).register(trainer)
    if chosen.noisy:
        trainer.register_op("pre_optim_steps", lambda: loss_module.apply(_reset_noise))
    if chosen.selected_keys:
        SelectKeys(chosen.selected_keys).register(trainer)
    trainer.register_op("batch_process", lambda batch: batch.cpu())


class _Noisy(Protocol):
    """A module whose weights have noise that is sampled now and then."""

    def reset_noise(self) -> object: ...


def _reset_noise(module: nn.Module) -> None:
    if offers(module, _Noisy):
        module.reset_noise()


def _minibatches(trainer: Trainer, replay_buffer: Any, device: torch.device, chosen: Any) -> None:
    if replay_buffer is not None:
        ReplayBufferTrainer(replay_buffer, chosen.batch_size, device=device).register(trainer)
        return
    BatchSubSampler(chosen.batch_size, max(0, chosen.sub_traj_len)).register(trainer)
    trainer.register_op("process_optim_batch", lambda batch: batch.to(device))


def _after_each_step(trainer: Trainer, schedule: Any, target_net_updater: Any) -> None:
    if schedule is not None:
        LRSchedulerHook(schedule, interval="optim").register(trainer)
    if target_net_updater is not None:
        TargetNetUpdaterHook(target_net_updater).register(trainer)


def _explore(trainer: Trainer, policy: Any, chosen: Any) -> None:
    """Let exploration decay: by the clocks of the trainer, or by the policy's own count."""
    if offers(policy_of(policy), ClockFollower):
        policy.policy.follow(trainer.progress)
    if offers(policy, Stepping):
        trainer.register_op("post_steps", policy.step, frames=chosen.frames_per_batch)


def _recorders(trainer: Trainer, recorder: Any, policy: Any, chosen: Any) -> None:
    """Register a recorder without exploration and one with it, each tried out once."""
    from tensordict.nn import InteractionType

    common: dict[str, Any] = {
        "record_frames": chosen.record_frames,
        "frame_skip": chosen.frame_skip,
        "policy_exploration": policy,
        "environment": recorder,
        "record_interval": chosen.record_interval,
    }
    deterministic = LogValidationReward(**common, log_keys=chosen.recorder_log_keys or [_REWARD])
    exploring = LogValidationReward(
        **common,
        exploration_type=InteractionType.RANDOM,
        suffix="exploration",
        out_keys={_REWARD: "r_evaluation_exploration"},
    )
    for name, hook in (("recorder", deterministic), ("recorder_exploration", exploring)):
        hook.register(trainer, name)
        hook(None)
