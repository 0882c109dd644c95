"""The arguments of `Trainer`, and what they may be."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlcore.checkpoints.retention import CheckpointRotation
from rlcore.errors import ArgumentTypeError, ConfigError
from rlcore.types.progress import ENDLESS

if TYPE_CHECKING:
    import torch

    from rlcore.scripts.trainer import Trainer
    from rlcore.training.parts import TrainerParts

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """The arguments of `Trainer`, as far as parts and hooks are made of them."""

    collector: Any
    total_frames: int | None
    loss_module: Callable[[Any], Any] | None
    frame_skip: int | None
    optim_steps_per_batch: int | None
    optimizer: torch.optim.Optimizer | None
    optimization_stepper: Any
    logger: Any
    clip_grad_norm: bool
    clip_norm: float | None
    progress_bar: bool
    seed: int | None
    save_trainer_interval: int
    log_interval: int
    save_trainer_file: str | Path | None
    num_epochs: int
    async_collection: bool
    auto_log_optim_steps: bool
    replay_buffer: Any
    target_net_updater: Any
    batch_size: int | None
    checkpoint: str | None
    checkpoint_rotation: CheckpointRotation | None
    checkpoint_metadata: Callable[[Trainer], Mapping[str, Any]] | None
    learner_backend: str
    learner_backend_options: Mapping[str, Any] | None
    learner_poll_interval: float
    hooks: Iterable[Any]
    evaluator: Any

    @classmethod
    def among(cls, arguments: Mapping[str, Any]) -> Settings:
        """Return those of some arguments that are settings."""
        return cls(**{field.name: arguments[field.name] for field in fields(cls)})

    @classmethod
    def of(cls, parts: TrainerParts, loss: Any, optimizer: Any) -> Settings:
        """Return what the arguments would be that stand for the parts of a config."""
        store, schedule = parts.store, parts.schedule
        return cls(
            collector=getattr(parts.collector, "source", parts.collector),
            total_frames=parts.run.total_frames,
            loss_module=loss,
            frame_skip=parts.frame_skip,
            optim_steps_per_batch=None,
            optimizer=optimizer,
            optimization_stepper=None,
            logger=None,
            clip_grad_norm=True,
            clip_norm=None,
            progress_bar=False,
            seed=parts.run.seed,
            save_trainer_interval=schedule.every.interval if schedule is not None else 10_000,
            log_interval=parts.metrics.every.interval,
            save_trainer_file=store.folder if store is not None else None,
            num_epochs=getattr(parts.buffer, "num_epochs", 1),
            async_collection=False,
            auto_log_optim_steps=parts.update_prefix is not None,
            replay_buffer=parts.buffer,
            target_net_updater=None,
            batch_size=None,
            checkpoint=None,
            checkpoint_rotation=None,
            checkpoint_metadata=None,
            learner_backend="local",
            learner_backend_options=None,
            learner_poll_interval=0.05,
            hooks=(),
            evaluator=parts.evaluator,
        )


def check(settings: Settings) -> None:
    """Refuse arguments that cannot be used.

    Raises:
        ConfigError: names the argument; one of a wrong type is a `TypeError` besides, any other one a `ValueError`.
    """
    _check_counts(settings)
    if settings.learner_backend != "local":
        raise ConfigError(f"learner_backend = {settings.learner_backend!r}: only 'local' is there")
    if settings.learner_poll_interval <= 0:
        raise ConfigError(f"learner_poll_interval = {settings.learner_poll_interval!r}: expected a positive number")
    if settings.batch_size is not None or settings.learner_backend_options:
        log.warning("batch_size and learner_backend_options belong to a remote learner and change nothing here")
    for name in ("loss_module", "checkpoint_metadata"):
        value = getattr(settings, name)
        if value is not None and not callable(value):
            raise ArgumentTypeError(f"{name}: a {type(value).__name__} cannot be called")
    if settings.checkpoint is not None and not isinstance(settings.checkpoint, str):
        raise ArgumentTypeError(
            f"checkpoint: a {type(settings.checkpoint).__name__}; expected the name of a checkpoint back end, such as "
            "'torch'. What takes part in checkpoints is registered with register_module"
        )
    if settings.checkpoint_rotation is not None and settings.save_trainer_file is not None:
        raise ConfigError("save_trainer_file and checkpoint_rotation both say where checkpoints go; give one of them")


def _check_counts(settings: Settings) -> None:
    for name in ("total_frames", "frame_skip"):
        value = getattr(settings, name)
        if value is None:  # no end, and one frame a step
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            kind = ConfigError if isinstance(value, int | float) and not isinstance(value, bool) else ArgumentTypeError
            raise kind(f"{name} = {value!r}: expected a positive number of frames")


def horizon(settings: Settings) -> int:
    """Return the frame at which a run ends."""
    return ENDLESS if settings.total_frames is None else settings.total_frames
