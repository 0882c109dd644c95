"""The arguments of `Trainer` as attributes: what was handed over can be read, and what is set later takes effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import torch

from rlcore.errors import ConfigError, NoSuchAttributeError, did_you_mean
from rlcore.hooks.operations import DESTINATIONS
from rlcore.scripts.parts import (
    as_collector,
    auto_log_hook,
    batches,
    make_writers,
    metadata,
    open_writers,
    progress_bar_hook,
)
from rlcore.scripts.settings import check, horizon
from rlcore.scripts.storage import open_storage
from rlcore.state.torchrl import complete
from rlcore.training.stateful import in_order, observers
from rlcore.types.progress import Every

if TYPE_CHECKING:
    from rlcore.hooks.points import Hook
    from rlcore.scripts.trainer import Trainer

# private attributes of TorchRL's trainer that scripts are seen to set, and what does the same here
_PEERS: Final = {
    "_collected_frames": "collected_frames",
    "_last_log": "log_interval",
    "_last_save": "save_trainer_interval",
    "_log_dict": "metrics.latest(name), which is read only",
    "_log_interval": "log_interval",
    "_modules": "register_module(name, module)",
    "_optim_count": "progress.updates",
    "_pbar": "progress_bar",
    "_stop_reason": "request_stop(reason)",
    "_stop_training": "request_stop(reason)",
}
# the lists of operations there, by destination
_PEERS_OPERATIONS: Final = {f"_{destination}_ops" for destination in (*DESTINATIONS, "pre_optim")}


class Argument:
    """An argument of `Trainer` as an attribute. A new value is checked as the constructor does.

    Args:
        follow: makes the parts of a trainer follow its settings.
    """

    def __init__(self, follow: Callable[[Trainer], None] | None = None) -> None:
        self._follow = follow
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, trainer: Trainer | None, owner: type | None = None) -> Any:
        if trainer is None:
            return self
        if "_settings" in trainer.__dict__:
            return getattr(trainer._settings, self._name)
        if self._name not in trainer.__dict__:
            raise AttributeError(f"{type(trainer).__name__}.{self._name} is not set before Trainer.__init__ is called")
        return trainer.__dict__[self._name]

    def __set__(self, trainer: Trainer, value: Any) -> None:
        if "_settings" not in trainer.__dict__:  # a subclass that keeps what it is about to hand over
            trainer.__dict__[self._name] = value
            return
        if trainer._of_config:
            raise ConfigError(f"{self._name}: this trainer was built from a config; change the value there")
        before = trainer._settings
        trainer._settings = replace(before, **{self._name: value})
        try:
            check(trainer._settings)
            if self._follow is not None:
                self._follow(trainer)
        except BaseException:
            trainer._settings = before
            raise


def check_name(trainer: Trainer, name: str) -> None:
    """Refuse to set an attribute that does not exist; a subclass may have any of its own.

    Raises:
        NoSuchAttributeError: there is none, so that setting it would do nothing; says what does.
    """
    if name in _PEERS or name in _PEERS_OPERATIONS:
        instead = _PEERS.get(name, "register_op(destination, operation)")
        raise NoSuchAttributeError(f"Trainer.{name} belongs to another library and does nothing here: use {instead}")
    if name.startswith("_") or not trainer._strict:
        return
    known = [*(entry for entry in dir(type(trainer)) if not entry.startswith("_")), *vars(trainer)]
    raise NoSuchAttributeError(
        f"Trainer has no attribute {name!r}{did_you_mean(name, known)}; for attributes of your own make a subclass, "
        "and for what belongs in checkpoints use register_module"
    )


def put_in_place(trainer: Trainer, name: str, old: Any, new: Any) -> None:
    """Let `new` take part in checkpoints where `old` did, or under `name`; None for what is not there."""
    stateful = trainer._assembly.stateful
    name = next((known for known, part in stateful.items() if old is not None and part is old), name)
    if new is None:
        stateful.pop(name, None)
        trainer._assembly.owners.pop(name, None)
    else:
        trainer._assembly.register(name, new)
    follow_registered(trainer)


def follow_registered(trainer: Trainer) -> None:
    """Let checkpoints hold what is registered now."""
    trainer.parts.stateful = in_order(trainer._assembly.stateful)
    provenance = replace(trainer.parts.provenance, owners=trainer._assembly.owners)
    trainer.parts.provenance = provenance.with_observers(observers(trainer.parts.stateful))


def follow_total_frames(trainer: Trainer) -> None:
    """End elsewhere, and let schedules follow."""
    total = horizon(trainer._settings)
    trainer.parts.run = replace(trainer.parts.run, total_frames=total)
    trainer.progress.total_frames = trainer.stop_at = total


def follow_frame_skip(trainer: Trainer) -> None:
    """Count the frames of a step again."""
    trainer.parts.frame_skip = trainer._settings.frame_skip or 1


def follow_batches(trainer: Trainer) -> None:
    """Make minibatches in another way, from the next iteration on."""
    trainer.parts.buffer = batches(trainer._settings, trainer.parts.collector, trainer.hooks)


def follow_replay_buffer(trainer: Trainer) -> None:
    """Save another replay buffer, and draw from it if it is one of rlcore."""
    registered = trainer._assembly.stateful
    new = complete(trainer._settings.replay_buffer)
    if not any(part is new for part in registered.values()):
        put_in_place(trainer, "buffer", registered.get("buffer"), new)
    follow_batches(trainer)


def follow_steps(trainer: Trainer) -> None:
    """Take other counts of steps and epochs.

    Raises:
        ConfigError: a buffer of rlcore makes the minibatches.
    """
    if hasattr(trainer._settings.replay_buffer, "minibatches"):
        raise ConfigError("the replay buffer of this trainer says how many minibatches there are; set it there")
    follow_batches(trainer)


def follow_collector(trainer: Trainer) -> None:
    """Take batches from another collector."""
    old = trainer.parts.collector
    trainer.parts.collector = as_collector(trainer._settings)
    put_in_place(trainer, "collector", old, trainer.parts.collector)
    follow_batches(trainer)


def follow_loss_module(trainer: Trainer) -> None:
    """Minimise another loss, and move the targets that it brings."""
    old, new = trainer.learner.loss_module, complete(trainer._settings.loss_module)  # type: ignore[attr-defined]
    put_in_place(trainer, "loss_module", old, new if isinstance(new, torch.nn.Module) else None)
    trainer.learner.loss_module = new  # type: ignore[attr-defined]
    if trainer.model is old:
        trainer.parts.model = new
    if getattr(old, "target_updater", None) is not getattr(new, "target_updater", None):
        trainer._script_hooks.follow_targets(trainer)


def follow_logger(trainer: Trainer) -> None:
    """Write metrics elsewhere from here on, and close what they were written to."""
    writers = make_writers(trainer._settings)
    trainer.metrics.close()
    for name in [name for name in trainer._assembly.stateful if name.startswith("logger.")]:
        put_in_place(trainer, name, None, None)
    trainer.metrics.writers = open_writers(writers, trainer._assembly)
    follow_registered(trainer)


def follow_log_interval(trainer: Trainer) -> None:
    """Write metrics at another interval."""
    trainer.metrics.every = Every(trainer._settings.log_interval)
    trainer.metrics.every.catch_up(trainer.progress)


def follow_save_interval(trainer: Trainer) -> None:
    """Save at another interval."""
    assert trainer.parts.schedule is not None, "a script's trainer has one"
    trainer.parts.schedule.every = Every(trainer._settings.save_trainer_interval)
    trainer.parts.schedule.every.catch_up(trainer.progress)


def follow_storage(trainer: Trainer) -> None:
    """Save elsewhere, or nowhere, at the interval that there was."""
    old, storage = trainer.parts.schedule, open_storage(trainer._settings)
    new = storage.schedule
    assert old is not None, "a script's trainer has one"
    assert new is not None, "a script's storage has one"
    new.every = old.every
    new.load_state_dict(old.state_dict())
    trainer.parts.schedule = new
    put_in_place(trainer, "checkpoints", old, new)
    trainer.parts.store, trainer.parts.fault_store = storage.store, storage.fault_store
    trainer.saving.saver = trainer.parts.saver()
    follow_metadata(trainer)


def follow_metadata(trainer: Trainer) -> None:
    """Say something else in the manifests of checkpoints."""
    trainer.parts.provenance = replace(trainer.parts.provenance, metadata=metadata(trainer))


def follow_progress_bar(trainer: Trainer) -> None:
    """Show the bar, or no more."""
    switch(trainer, progress_bar_hook(trainer._assembly.context), trainer._settings.progress_bar)


def follow_auto_log(trainer: Trainer) -> None:
    """Log losses and counts, or no more."""
    switch(trainer, auto_log_hook(), trainer._settings.auto_log_optim_steps)
    trainer.parts.update_prefix = "" if trainer._settings.auto_log_optim_steps else None


def switch(trainer: Trainer, hook: Hook, on: bool) -> None:
    """Add a hook under its name, or take the one of that name away, from the next iteration on."""
    there = [known for known in trainer.hooks.coming if known.name == hook.name]
    if on and not there:
        trainer.hooks.replace([], [hook])
    elif not on:
        for known in there:
            close = getattr(known.instance, "shutdown", None)
            if close is not None:
                close()
        trainer.hooks.replace(there, [])


class Arguments:
    """The arguments of `Trainer`, each as an attribute of its name."""

    async_collection = Argument(follow_collector)
    auto_log_optim_steps = Argument(follow_auto_log)
    batch_size = Argument()
    checkpoint = Argument(follow_storage)
    checkpoint_metadata = Argument(follow_metadata)
    checkpoint_rotation = Argument(follow_storage)
    clip_grad_norm = Argument()
    clip_norm = Argument()
    collector = Argument(follow_collector)
    frame_skip = Argument(follow_frame_skip)
    learner_backend = Argument()
    learner_backend_options = Argument()
    learner_poll_interval = Argument()
    log_interval = Argument(follow_log_interval)
    logger = Argument(follow_logger)
    loss_module = Argument(follow_loss_module)
    num_epochs = Argument(follow_steps)
    optim_steps_per_batch = Argument(follow_steps)
    progress_bar = Argument(follow_progress_bar)
    replay_buffer = Argument(follow_replay_buffer)
    save_trainer_file = Argument(follow_storage)
    save_trainer_interval = Argument(follow_save_interval)
    seed = Argument()
    total_frames = Argument(follow_total_frames)
