"""The trainer as scripts use it: a keyword constructor, operations registered at destinations, saving to a path.

The constructor is made of the fields of `arguments.py`, and calls `__post_init__`. The trainer is built of layers: the
loop (`training/loop.py`), what is registered with it (`registering.py`), arguments that are set later (`following.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlcore.assembly.assembly import Assembly
from rlcore.errors import ArgumentTypeError, NoCheckpointError
from rlcore.loggers.metrics import Last
from rlcore.restore.optimizers import optimizer_of
from rlcore.scripts.arguments import check, horizon
from rlcore.scripts.following import FollowingTrainer
from rlcore.scripts.foreign import check_name
from rlcore.scripts.metadata import metadata
from rlcore.scripts.parts import make_parts, seed_with
from rlcore.scripts.registering import SCRIPT
from rlcore.scripts.storage import open_checkpoint, placed
from rlcore.state.exactness import outside
from rlcore.stock.timing import LogTiming
from rlcore.types.context import Context
from rlcore.types.foreign import WithParamGroups
from rlcore.types.optional import offers

if TYPE_CHECKING:
    from tensordict import TensorDict

log = logging.getLogger(__name__)


class Trainer(FollowingTrainer):
    """Trains a loss module on what a collector yields.

    Everything that happens between is registered: operations with `register_op`, hook objects with their `register`,
    hooks of rlcore plugins with `hooks`.

    Args:
        collector: an iterable of TensorDicts `[env, time]` or `[time]`, or a collector of rlcore; None for a trainer
            that only saves and loads.
        total_frames: environment frames to train for; None to go on until the collector has no more batches, or a stop.
        frame_skip: environment frames per step; None: 1.
        optim_steps_per_batch: optimisation steps per epoch; None to go on until `process_optim_batch` ends the epoch.
        loss_module: from a batch to losses, both TensorDicts or mappings; keys that begin with `loss` are minimised. Of
            several policies a mapping from their names to such: each gets the part of the batch under its name, and the
            names of its losses begin with it, `prey/loss_objective`.
        optimizer: for all losses; registered as an `OptimizerHook`. Leave it out to register several of them. Of
            several policies a mapping from each name to an optimizer of the losses of that policy.
        optimization_stepper: an object whose `step(trainer, sub_batch)` replaces loss, backward and step.
        logger: anything with `log_scalar(name, value, step)` or `log_metrics(metrics, step)`, or several of them.
        clip_grad_norm: whether `clip_norm` limits the norm of all gradients, rather than each element.
        clip_norm: the limit; None for no clipping.
        progress_bar: whether to show one.
        seed: of the collector, and then of torch, NumPy and Python.
        save_trainer_interval: environment frames between checkpoints.
        log_interval: environment frames between two writes of the metrics; values in between are averaged.
        save_trainer_file: folder of the checkpoints; nothing is saved without it.
        num_epochs: passes over each batch.
        async_collection: the collector fills a replay buffer in the background, and batches are None.
        log_timings: whether to register a `LogTiming`.
        auto_log_optim_steps: whether the losses and `optim_steps` are logged.
        replay_buffer: of rlcore, from which minibatches are sampled in place of `optim_steps_per_batch`.
        target_net_updater: moves target networks after each step; registered as a `TargetNetUpdaterHook`. Default: the
            loss module's own, if it has one.
        checkpoint: name of the checkpoint back end; default: `CKPT_BACKEND`, or torch.
        checkpoint_rotation: which checkpoints are kept, and where; in place of `save_trainer_file`.
        checkpoint_metadata: from the trainer to what the manifest of a checkpoint says besides.
        learner_backend: only `local`.
        batch_size, learner_backend_options, learner_poll_interval: of a remote learner; they change nothing here.
        hooks: hook objects of rlcore, with methods marked `@hookimpl`.
        evaluator: of rlcore.
        assembly: the parts that a `Factory` built.

    Every argument but `hooks`, `evaluator`, `log_timings` and `assembly` is an attribute of its name: setting it takes
    effect as if it had been handed over, from the next iteration on. Setting an attribute that does not exist is an
    error; a subclass may have attributes of its own.

    Raises:
        ConfigError: an argument that cannot be used.
    """

    _strict = False
    _iterating = False

    def __post_init__(self, log_timings: bool, hooks: Iterable[Any], evaluator: Any, assembly: Assembly | None) -> None:
        """Build the parts that the arguments stand for, and register the hooks that do."""
        self.learner_backend_options = dict(self.learner_backend_options or {})
        check(self)
        assembly = assembly or Assembly(Context.alone("trainer", self.seed or 0, horizon(self)))
        self._become_loop(make_parts(self, hooks, evaluator, assembly), assembly)
        self.parts.provenance = replace(self.parts.provenance, metadata=metadata(self))
        self._argument_hooks.follow_stepper(self)
        self._argument_hooks.follow_optimizer(self)
        self._argument_hooks.follow_targets(self)
        if log_timings:
            LogTiming().register(self)
        self._strict = type(self) is Trainer

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__ and not hasattr(type(self), name):  # any name that a script may set
            check_name(name, (*dir(type(self)), *vars(self)) if self._strict else None)
        super().__setattr__(name, value)

    @property
    def collected_frames(self) -> int:
        """Environment frames collected so far."""
        return self.progress.frames

    @collected_frames.setter
    def collected_frames(self, frames: int) -> None:
        self.progress.frames = int(frames)

    def shutdown(self) -> None:
        """Close the collector and the loggers, as the end of `train` does; again is nothing."""
        if not self._closed:
            self._shutdown()

    def optim_steps(self, batch: TensorDict | None) -> None:
        """Run the epochs of optimisation that follow a batch `[env, time]`, with their hooks, in `train` or outside."""
        if self._iterating:
            super().optim_steps(batch)
            return
        self.hooks.follow_changes()
        super().optim_steps(batch)
        if self.auto_log_optim_steps:
            self.metrics.add({"optim_steps": Last(self.progress.updates)})

    def set_seed(self, seed: int | None = None) -> None:
        """Seed the collector, and torch, NumPy and Python with the seed that follows from it.

        Args:
            seed: default: the attribute `seed`; without one, nothing happens.
        """
        seed = self.seed if seed is None else seed
        if seed is not None:
            seed_with(self.parts.collector, seed)

    def save_trainer(self, force_save: bool = False) -> Path | None:
        """Save a checkpoint if one is due, or in any case; return its folder, or None where nothing was saved."""
        if self.saver is None:
            return None
        if force_save or self.saver.due(self.progress, None):
            return self.save()
        return None

    def load_from_file(
        self,
        file: str | Path,
        *,
        weights_only: bool = True,
        map_location: Any = None,
        mmap: bool = True,
        **options: Any,
    ) -> Trainer:
        """Restore the latest checkpoint in a folder, or the one that `file` is, and return this trainer.

        Loggers may have come or gone since; a new one begins here.

        Args:
            file: what `save_trainer_file` was, or a checkpoint in it.
            weights_only: either; nothing in a checkpoint is ever unpickled.
            map_location: as in `torch.load`; where tensors are before the parts take them. Parameters and the state of
                optimizers stay on the devices where they are.
            mmap: whether tensors that a part keeps may stay mapped from the files.
            options: `drop` and `fresh`, as `rlcore.restore.components.restore` takes them.

        Raises:
            StorageError: there is none, it is damaged, or does not fit what is registered.
            ArgumentTypeError: another option.
        """
        for name in options:
            if name not in ("drop", "fresh"):
                raise ArgumentTypeError(
                    f"load_from_file: no option {name!r}; they are weights_only, map_location, mmap, drop and fresh"
                )
        entry, states = self._checkpoints(Path(file))
        owners = entry.manifest["owners"]
        parts = self.parts.stateful
        # the parts of rlcore know where their tensors belong, and optimizers put theirs beside their parameters
        stay = [name for name in states if owners.get(name) != SCRIPT and name != "loss_module"]
        stay += [name for name, part in parts.items() if offers(optimizer_of(part), WithParamGroups)]
        states = placed(states, map_location, mmap, stay)
        self.load_state_dict(states, owners=owners, **options)
        provenance = self.parts.provenance
        here = outside(entry.manifest, provenance.domain, provenance.versions)
        for reason in here:
            log.warning("exact = false: %s", reason)
        self.parts.provenance = provenance.with_reasons([*entry.manifest["inexact"], *here])
        return self

    def __repr__(self) -> str:
        parts = {
            "loss": self.loss_module,
            "collector": self.collector,
            "optimizer": self.optimizer,
            "logger": self.logger,
        }
        kinds = (f"{name}={None if part is None else type(part).__name__}" for name, part in parts.items())
        return f"Trainer({', '.join(kinds)})"

    def _checkpoints(self, path: Path) -> Any:
        if not path.exists():
            raise NoCheckpointError(f"load_from_file: {str(path)!r} does not exist")
        return open_checkpoint(path, self.checkpoint)

    def _registered(self, source: Any) -> None:
        """Move no targets where a script registers a hook that moves them."""
        self._argument_hooks.step_aside(self, source)

    def _iteration(self) -> bool:
        self._iterating = True
        try:
            return super()._iteration()
        finally:
            self._iterating = False
