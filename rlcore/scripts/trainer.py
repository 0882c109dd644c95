"""The trainer as scripts use it: a keyword constructor, operations registered at destinations, saving to a path.

The loop itself is in `training/loop.py`; what the constructor makes of its arguments is in `parts.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlcore.assembly.assembly import Assembly
from rlcore.checkpoints.retention import CheckpointRotation
from rlcore.errors import ArgumentTypeError, HookError, MissingStateError, NoCheckpointError
from rlcore.hooks.operations import Operations
from rlcore.loggers.metrics import Last
from rlcore.restore.components import Restored, restore
from rlcore.scripts.attributes import Arguments, check_name
from rlcore.scripts.hooks import HookArguments, ScriptHooks
from rlcore.scripts.parts import SCRIPT, assemble, describe
from rlcore.scripts.settings import Settings
from rlcore.scripts.storage import open_checkpoint, placed
from rlcore.state.exactness import outside, unrestored_parts
from rlcore.state.torchrl import complete
from rlcore.stock.timing import LogTiming
from rlcore.training.loop import Loop
from rlcore.training.parts import TrainerParts
from rlcore.training.stateful import in_order, observers
from rlcore.types.progress import Progress

if TYPE_CHECKING:
    import torch
    from tensordict import TensorDict

log = logging.getLogger(__name__)


class Trainer(HookArguments, Arguments, Loop):
    """Trains a loss module on what a collector yields.

    Everything that happens between is registered: operations with `register_op`, hook objects with their `register`,
    hooks of rlcore plugins with `hooks`.

    Args:
        collector: an iterable of TensorDicts `[env, time]` or `[time]`, or a collector of rlcore; None for a trainer
            that only saves and loads.
        total_frames: environment frames to train for; None to go on until the collector has no more batches, or a stop.
        frame_skip: environment frames per step; None: 1.
        optim_steps_per_batch: optimisation steps per epoch; None to go on until `process_optim_batch` ends the epoch.
        loss_module: from a batch to losses, both TensorDicts or mappings; keys that begin with `loss` are minimised.
        optimizer: for all losses; registered as an `OptimizerHook`. Leave it out to register several of them.
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
        replay_buffer: of rlcore, from which minibatches are drawn in place of `optim_steps_per_batch`.
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

    _settings: Settings
    _script_hooks: ScriptHooks
    _of_config = False
    _strict = False
    _iterating = False

    def __init__(
        self,
        *,
        collector: Any,
        total_frames: int | None,
        loss_module: Callable[[Any], Any] | None = None,
        frame_skip: int | None = 1,
        optim_steps_per_batch: int | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        optimization_stepper: Any = None,
        logger: Any = None,
        clip_grad_norm: bool = True,
        clip_norm: float | None = None,
        progress_bar: bool = True,
        seed: int | None = None,
        save_trainer_interval: int = 10_000,
        log_interval: int = 10_000,
        save_trainer_file: str | Path | None = None,
        num_epochs: int = 1,
        async_collection: bool = False,
        log_timings: bool = False,
        auto_log_optim_steps: bool = True,
        replay_buffer: Any = None,
        target_net_updater: Any = None,
        checkpoint: str | None = None,
        checkpoint_rotation: CheckpointRotation | None = None,
        checkpoint_metadata: Callable[[Trainer], Mapping[str, Any]] | None = None,
        learner_backend: str = "local",
        batch_size: int | None = None,
        learner_backend_options: Mapping[str, Any] | None = None,
        learner_poll_interval: float = 0.05,
        hooks: Iterable[Any] = (),
        evaluator: Any = None,
        assembly: Assembly | None = None,
    ) -> None:
        learner_backend_options = dict(learner_backend_options or {})
        self._settings = Settings.among(locals())
        assembled = assemble(self, self._settings, assembly)
        super().__init__(assembled.parts)
        self._begin_registering(assembled.assembly)
        self._script_hooks.follow_stepper(self)
        self._script_hooks.follow_optimizer(self)
        self._script_hooks.follow_targets(self)
        if log_timings:
            LogTiming().register(self)
        self._strict = type(self) is Trainer

    @classmethod
    def of(cls, parts: TrainerParts, assembly: Assembly) -> Trainer:
        """Return the trainer of parts that were built from a config."""
        trainer = cls.__new__(cls)
        optimizers = list(assembly.context.parts.get("optimizers", {}).values())
        optimizer = optimizers[0] if len(optimizers) == 1 else None
        trainer._settings = Settings.of(parts, assembly.context.parts.get("loss"), optimizer)
        Loop.__init__(trainer, parts)
        trainer._begin_registering(assembly)
        trainer._of_config = True
        trainer._strict = cls is Trainer
        return trainer

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__ and not hasattr(type(self), name):
            check_name(self, name)
        super().__setattr__(name, value)

    @property
    def collected_frames(self) -> int:
        """Environment frames collected so far."""
        return self.progress.frames

    @collected_frames.setter
    def collected_frames(self, frames: int) -> None:
        self.progress.frames = int(frames)

    @property
    def app_state(self) -> dict[str, Any]:
        """Everything that takes part in checkpoints, by name."""
        return dict(self.parts.stateful)

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
        if self._settings.auto_log_optim_steps:
            self.metrics.add({"optim_steps": Last(self.progress.updates)})

    def set_seed(self, seed: int | None = None) -> None:
        """Seed the collector, and torch, NumPy and Python with the seed that follows from it.

        Args:
            seed: default: the attribute `seed`; without one, nothing happens.
        """
        from rlcore.state.generators import seed_all

        seed = self.seed if seed is None else seed
        if seed is None:
            return
        seeding = getattr(self.parts.collector, "set_seed", None)
        seed_all(seed if seeding is None else seeding(seed))

    def compute_loss(self, sub_batch: TensorDict, method: str | None = None) -> Any:
        """Return the losses of a sub-batch, of the loss module or of one of its methods."""
        if self.loss_module is None:
            raise HookError("compute_loss: there is no loss_module")
        return (self.loss_module if method is None else getattr(self.loss_module, method))(sub_batch)

    def register_op(self, dest: str, op: Callable[..., Any], **kwargs: Any) -> None:
        """Call `op` at a destination, after what is registered there, from the next iteration on.

        A hook object is told of this trainer, as its `register` does.

        Args:
            dest: one of `rlcore.hooks.operations.DESTINATIONS`, which says what `op` is called with and returns.
            op: a function, bound method or callable object.
            kwargs: further arguments of every call.

        Raises:
            HookError: there is no such destination, or `op` cannot be called.
        """
        self._operations.add(dest, op, kwargs)
        source: Any = getattr(op, "__self__", op)
        self._script_hooks.step_aside(self, source)
        is_hook = hasattr(source, "register") and callable(getattr(source, "attach", None))
        if is_hook and not any(source is known for known in self._attached):
            self._attached.append(source)
            source.attach(self)

    register_hook = register_op

    def unregister_op(self, op: Any, dest: str | None = None) -> None:
        """Call `op` no more, at one destination or at all; a hook object takes all of its methods away.

        Raises:
            HookError: it is not registered there.
        """
        self._operations.remove(op, dest)

    def register_module(self, module_name: Any, module: Any) -> None:
        """Make an object with `state_dict` and `load_state_dict` part of every checkpoint.

        The two arguments may come in either order. An object that is registered after a resume gets its state then.

        Raises:
            HookError: the name is taken, or the object has no state.
        """
        if not isinstance(module_name, str) and isinstance(module, str):
            module_name, module = module, module_name
        if module_name in self.parts.stateful:
            taken = type(self.parts.stateful[module_name]).__name__
            raise HookError(f"register_module: the name {module_name!r} is taken by a {taken}; choose another one")
        if not hasattr(complete(module), "state_dict") or not hasattr(module, "load_state_dict"):
            raise HookError(
                f"register_module({module_name!r}): a {type(module).__name__} has no state_dict and load_state_dict"
            )
        self._assembly.register(module_name, module, SCRIPT)
        self.parts.stateful = in_order(self._assembly.stateful)
        self.parts.provenance = self.parts.provenance.with_observers(observers(self.parts.stateful))
        self._operations.name(module, module_name)
        if module_name in self._waiting:
            restore({module_name: module}, {module_name: self._waiting.pop(module_name)}, {})
            self._tell_collector()

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
        stay += [name for name, part in parts.items() if hasattr(getattr(part, "optimizer", part), "param_groups")]
        states = placed(states, map_location, mmap, stay)
        self.load_state_dict(states, owners=owners, **options)
        provenance = self.parts.provenance
        here = outside(entry.manifest, provenance.domain, provenance.versions)
        for reason in here:
            log.warning("exact = false: %s", reason)
        self.parts.provenance = provenance.with_reasons([*entry.manifest["inexact"], *here])
        return self

    def load_state_dict(
        self, states: Mapping[str, Any], notes: Mapping[str, str] | None = None, **options: Any
    ) -> list[Restored]:
        """Restore everything that has state. What a script has yet to register as a module waits for that."""
        owners = options.get("owners") or {}
        self._waiting |= {
            name: state
            for name, state in states.items()
            if owners.get(name) == SCRIPT and name not in self.parts.stateful and name not in options.get("drop", ())
        }
        known = {name: state for name, state in states.items() if name not in self._waiting}
        report = super().load_state_dict(known, notes, **options)
        self._tell_collector()
        unrestored = unrestored_parts(self.parts.stateful)
        for reason in unrestored:
            log.warning("exact = false: %s", reason)
        self.parts.provenance = self.parts.provenance.with_reasons(unrestored)
        return report

    def __iter__(self) -> Iterator[Progress]:
        """Train; yield the clocks after each iteration.

        Raises:
            StorageError: the checkpoint has state of a module that was not registered since.
        """
        if self._waiting:
            raise MissingStateError(
                f"the checkpoint has state of {', '.join(self._waiting)}, which a script registered as a module; "
                "register it before training, or leave the state out with drop"
            )
        return super().__iter__()

    def __repr__(self) -> str:
        return describe(self)

    def _checkpoints(self, path: Path) -> Any:
        if not path.exists():
            raise NoCheckpointError(f"load_from_file: {str(path)!r} does not exist")
        return open_checkpoint(path, self._settings.checkpoint)

    def _tell_collector(self) -> None:
        """Let a collector that acts with copies of the weights have the restored ones."""
        send = getattr(self.collector, "update_policy_weights_", None)
        if send is not None:
            send()

    def _iteration(self) -> bool:
        self._iterating = True
        try:
            return super()._iteration()
        finally:
            self._iterating = False

    def _begin_registering(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._waiting: dict[str, Any] = {}
        self._attached: list[Any] = []
        self._script_hooks = ScriptHooks()
        self._operations = Operations(self.hooks, lambda: (self._settings.clip_grad_norm, self._settings.clip_norm))
