"""What follows when an argument of `Trainer` is set later: its parts become what they would have been."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import torch

from rlcore.assembly.assembly import Assembly
from rlcore.errors import ConfigError
from rlcore.hooks.points import Hook
from rlcore.scripts.arguments import check, horizon
from rlcore.scripts.hooks import ArgumentHooks, updater_of
from rlcore.scripts.metadata import metadata
from rlcore.scripts.parts import (
    as_collector,
    auto_log_hook,
    make_buffer,
    make_writers,
    open_writers,
    progress_bar_hook,
)
from rlcore.scripts.registering import RegisteringTrainer
from rlcore.scripts.storage import open_storage
from rlcore.state.torchrl import complete
from rlcore.stock.progress_bar import ProgressBar
from rlcore.training.parts import TrainerParts
from rlcore.types.foreign import MakesMinibatches
from rlcore.types.optional import offers
from rlcore.types.progress import Every


class FollowingTrainer(RegisteringTrainer):
    """A trainer whose parts follow its arguments."""

    def _become_loop(self, parts: TrainerParts, assembly: Assembly) -> None:
        super()._become_loop(parts, assembly)
        self._argument_hooks = ArgumentHooks()

    def _set_argument(self, name: str, value: Any) -> None:
        """Keep a value that the constructor would take, and let the parts follow; else change nothing."""
        if not self._built:  # the constructor hands it over, or a subclass keeps what it is about to hand over
            super()._set_argument(name, value)
            return
        before = self.__dict__[name]
        super()._set_argument(name, value)
        try:
            check(self)
            if name in FOLLOW:
                FOLLOW[name](self)
        except BaseException:
            super()._set_argument(name, before)
            raise


def _follow_total_frames(trainer: FollowingTrainer) -> None:
    """End elsewhere, and let schedules follow."""
    total = horizon(trainer)
    trainer.parts.run = replace(trainer.parts.run, total_frames=total)
    trainer.progress.total_frames = trainer.stop_at = total


def _follow_frame_skip(trainer: FollowingTrainer) -> None:
    """Count as many frames for each step from here on."""
    trainer.parts.frame_skip = trainer.frame_skip or 1


def _follow_batches(trainer: FollowingTrainer) -> None:
    """Make minibatches in another way, from the next iteration on."""
    trainer.parts.buffer = make_buffer(trainer, trainer.parts.collector, trainer.hooks)


def _follow_replay_buffer(trainer: FollowingTrainer) -> None:
    """Save another replay buffer, and sample from it if it is one of rlcore."""
    registered = trainer._assembly.stateful
    new = complete(trainer.replay_buffer)
    if not any(part is new for part in registered.values()):
        trainer._replace_part("buffer", registered.get("buffer"), new)
    _follow_batches(trainer)


def _follow_steps(trainer: FollowingTrainer) -> None:
    """Take other counts of steps and epochs.

    Raises:
        ConfigError: a buffer of rlcore makes the minibatches.
    """
    if offers(trainer.replay_buffer, MakesMinibatches):
        raise ConfigError("the replay buffer of this trainer says how many minibatches there are; set it there")
    _follow_batches(trainer)


def _follow_collector(trainer: FollowingTrainer) -> None:
    """Take batches from another collector."""
    old = trainer.parts.collector
    trainer.parts.collector = as_collector(trainer)
    trainer._replace_part("collector", old, trainer.parts.collector)
    _follow_batches(trainer)


def _follow_loss_module(trainer: FollowingTrainer) -> None:
    """Minimise another loss, and move the targets that it brings."""
    old, new = trainer.learner.loss_module, complete(trainer.loss_module)  # type: ignore[attr-defined]
    trainer._replace_part("loss_module", old, new if isinstance(new, torch.nn.Module) else None)
    trainer.learner.loss_module = new  # type: ignore[attr-defined]
    if trainer.model is old:
        trainer.parts.model = new
    if updater_of(old) is not updater_of(new):
        trainer._argument_hooks.follow_targets(trainer)


def _follow_logger(trainer: FollowingTrainer) -> None:
    """Write metrics elsewhere from here on, and close what they were written to."""
    writers = make_writers(trainer)
    trainer.metrics.close()
    for name in [name for name in trainer._assembly.stateful if name.startswith("logger.")]:
        trainer._replace_part(name, None, None)
    trainer.metrics.writers = open_writers(writers, trainer._assembly)
    trainer._save_what_is_registered()


def _follow_log_interval(trainer: FollowingTrainer) -> None:
    """Write metrics at another interval."""
    trainer.metrics.every = Every(trainer.log_interval)
    trainer.metrics.every.catch_up(trainer.progress)


def _follow_save_interval(trainer: FollowingTrainer) -> None:
    """Save at another interval."""
    assert trainer.parts.schedule is not None, "a script's trainer has one"
    trainer.parts.schedule.every = Every(trainer.save_trainer_interval)
    trainer.parts.schedule.every.catch_up(trainer.progress)


def _follow_storage(trainer: FollowingTrainer) -> None:
    """Save elsewhere, or nowhere, at the interval that there was."""
    old, storage = trainer.parts.schedule, open_storage(trainer)
    new = storage.schedule
    assert old is not None, "a script's trainer has one"
    assert new is not None, "a script's storage has one"
    new.every = old.every
    new.load_state_dict(old.state_dict())
    trainer.parts.schedule = new
    trainer._replace_part("checkpoints", old, new)
    trainer.parts.store, trainer.parts.fault_store = storage.store, storage.fault_store
    trainer.saving.saver = trainer.parts.saver()
    _follow_metadata(trainer)


def _follow_metadata(trainer: FollowingTrainer) -> None:
    """Say something else in the manifests of checkpoints."""
    trainer.parts.provenance = replace(trainer.parts.provenance, metadata=metadata(trainer))


def _follow_progress_bar(trainer: FollowingTrainer) -> None:
    """Show the bar, or no more."""
    _switch(trainer, progress_bar_hook(trainer._assembly.context), trainer.progress_bar)


def _follow_auto_log(trainer: FollowingTrainer) -> None:
    """Log losses and counts, or no more."""
    _switch(trainer, auto_log_hook(), trainer.auto_log_optim_steps)
    trainer.parts.update_prefix = "" if trainer.auto_log_optim_steps else None


def _switch(trainer: FollowingTrainer, hook: Hook, on: bool) -> None:
    """Add a hook under its name, or take the one of that name away, from the next iteration on."""
    present = [other for other in trainer.hooks.coming if other.name == hook.name]
    if on and not present:
        trainer.hooks.replace([], [hook])
    elif not on:
        for other in present:
            if isinstance(other.instance, ProgressBar):
                other.instance.shutdown(trainer)
        trainer.hooks.replace(present, [])


def _follow_optimizer(trainer: FollowingTrainer) -> None:
    """Take the steps by another optimizer."""
    trainer._argument_hooks.follow_optimizer(trainer)


def _follow_stepper(trainer: FollowingTrainer) -> None:
    """Let another stepper, or the optimizer, take the steps."""
    trainer._argument_hooks.follow_stepper(trainer)
    trainer._argument_hooks.follow_optimizer(trainer)


def _follow_targets(trainer: FollowingTrainer) -> None:
    """Move the targets by another updater."""
    trainer._argument_hooks.follow_targets(trainer)


# the others are read where they are used, so that nothing has to follow
FOLLOW: Final[dict[str, Callable[[FollowingTrainer], None]]] = {
    "async_collection": _follow_collector,
    "auto_log_optim_steps": _follow_auto_log,
    "checkpoint": _follow_storage,
    "checkpoint_metadata": _follow_metadata,
    "checkpoint_rotation": _follow_storage,
    "collector": _follow_collector,
    "frame_skip": _follow_frame_skip,
    "log_interval": _follow_log_interval,
    "logger": _follow_logger,
    "loss_module": _follow_loss_module,
    "num_epochs": _follow_steps,
    "optim_steps_per_batch": _follow_steps,
    "optimization_stepper": _follow_stepper,
    "optimizer": _follow_optimizer,
    "progress_bar": _follow_progress_bar,
    "replay_buffer": _follow_replay_buffer,
    "save_trainer_file": _follow_storage,
    "save_trainer_interval": _follow_save_interval,
    "target_net_updater": _follow_targets,
    "total_frames": _follow_total_frames,
}
