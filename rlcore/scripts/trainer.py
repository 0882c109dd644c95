"""The trainer as scripts use it: from keyword arguments to the parts of a loop, and saving to a path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch

from rlcore.errors import ConfigError
from rlcore.hooks.operations import DESTINATIONS
from rlcore.loggers.metrics import Last
from rlcore.plugins.adapters import adapted
from rlcore.plugins.host import PluginHost
from rlcore.plugins.known import lend
from rlcore.run.assembly import Assembly
from rlcore.scripts import parts as made
from rlcore.scripts.arguments import check, horizon
from rlcore.scripts.hooks import Targets, register_optimizers, use_stepper
from rlcore.scripts.storage import load_checkpoint, metadata, open_storage
from rlcore.training.loop import Loop
from rlcore.training.parts import TrainerParts
from rlcore.types.context import Context
from rlcore.types.foreign import MakesMinibatches
from rlcore.types.optional import offers
from rlcore.types.overrides import Carries, Original, is_overridden, originals
from rlcore.types.progress import Every

if TYPE_CHECKING:
    from tensordict import TensorDict

# arguments of the constructor that are no attributes
_HANDED_OVER: Final = ("log_timings", "hooks", "evaluator", "assembly")
# what a subclass of TorchRL's trainer may override and one of this trainer may not
_INSTEAD: Final = {
    **{f"_{name}_hook": f"register_op({name!r}, operation) has it called" for name in DESTINATIONS},
    "_pre_optim_hook": "register_op('pre_optim_steps', operation) has it called",
    "_post_optim_log": "register_op('post_optim_log', operation) has it called",
    "_save_trainer": "override save_trainer",
}


class Trainer(Carries, Loop):
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
        checkpoint_rotation: which checkpoints are kept, and where, in place of `save_trainer_file`: an
            `rlcore.CheckpointRotation`, or one of TorchRL.
        checkpoint_metadata: from the trainer to what the manifest of a checkpoint says besides, or None.
        learner_backend: only `local`.
        batch_size, learner_backend_options, learner_poll_interval: of a remote learner; they change nothing here.
        hooks: hook objects of rlcore, with methods marked `@hookimpl`.
        evaluator: of rlcore.
        assembly: the parts that a `Factory` built.

    Every argument but `hooks`, `evaluator`, `log_timings` and `assembly` is an attribute of its name. The numbers among
    them, but for `log_interval`, and `progress_bar` may be set, and take effect from the next iteration on; setting
    another one is an error. So is setting an attribute that does not exist; a subclass may have attributes of its own.

    A subclass may override the methods of TorchRL's trainer that are here, which are then called where that one calls
    them: the public ones, `_process_batch_hook` and `_log`.

    Raises:
        ConfigError: an argument that cannot be used.
        NotSupportedError: a subclass overrides what would never be called.
    """

    original = Original("TorchRL", originals(__package__)["names"], _INSTEAD)

    total_frames: int | None
    frame_skip: int | None
    optim_steps_per_batch: int | None
    optimization_stepper: Any
    logger: Any
    progress_bar: bool
    seed: int | None
    save_trainer_interval: int
    log_interval: int
    save_trainer_file: str | Path | None
    num_epochs: int
    async_collection: bool
    auto_log_optim_steps: bool
    target_net_updater: Any
    checkpoint: str | None
    checkpoint_rotation: Any
    checkpoint_metadata: Callable[[Any], Mapping[str, Any] | None] | None
    learner_backend: str
    batch_size: int | None
    learner_backend_options: Mapping[str, Any] | None
    learner_poll_interval: float

    _arguments: frozenset[str] = frozenset()  # those that are set already; later values take effect
    _iterating = False
    _targets: Targets | None = None

    def __init__(
        self,
        *,
        collector: Any,
        total_frames: int | None,
        loss_module: Callable[[Any], Any] | Mapping[str, Callable[[Any], Any]] | None = None,
        frame_skip: int | None = 1,
        optim_steps_per_batch: int | None = None,
        optimizer: torch.optim.Optimizer | Mapping[str, torch.optim.Optimizer] | None = None,
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
        checkpoint_rotation: Any = None,
        checkpoint_metadata: Callable[[Any], Mapping[str, Any] | None] | None = None,
        learner_backend: str = "local",
        batch_size: int | None = None,
        learner_backend_options: Mapping[str, Any] | None = None,
        learner_poll_interval: float = 0.05,
        hooks: Iterable[Any] = (),
        evaluator: Any = None,
        assembly: Assembly | None = None,
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name not in ("self", *_HANDED_OVER)}
        arguments["learner_backend_options"] = dict(learner_backend_options or {})
        if isinstance(loss_module, Mapping) or isinstance(optimizer, Mapping):
            joined = lend("rlcore.scripts", "loss_of_policies", "Trainer(loss_module={policy: loss})")
            arguments["loss_module"] = joined(loss_module, optimizer, optimization_stepper)
        check(**arguments)
        if checkpoint_rotation is not None:
            rotation_of = lend("rlcore.scripts", "rotation_of", "Trainer(checkpoint_rotation=...)")
            arguments["checkpoint_rotation"] = rotation_of(checkpoint_rotation)
        vars(self).update(arguments)
        self._latest: set[str] = set()
        self._has_own_log = is_overridden(self, "_log")
        assembly = assembly or Assembly(Context.alone("trainer", seed or 0, horizon(total_frames)))
        super().__init__(self._make_parts(hooks, evaluator, assembly))
        self._arguments = frozenset(arguments)
        asked = metadata(self, checkpoint_metadata, self.checkpoint_rotation)
        self.parts.provenance = replace(self.parts.provenance, metadata=asked)
        if seed is not None:
            self.set_seed()
        use_stepper(self, optimization_stepper)
        register_optimizers(self, optimizer, taken_by_stepper=optimization_stepper is not None)
        self._targets = Targets(self, target_net_updater, self.loss_module)
        if log_timings:
            lend("rlcore", "LogTiming", "Trainer(log_timings=True)")().register(self)
        self._strict = type(self) is Trainer

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._arguments:
            self._set_argument(name, value)
            return
        super().__setattr__(name, value)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            if "parts" in vars(self):
                told = f"; {_INSTEAD[name]}" if name in _INSTEAD else ""
                raise AttributeError(f"{kind!r} object has no attribute {name!r}{told}")
            raise AttributeError(f"{kind}.{name} is not set before Trainer.__init__ is called")

    @property
    def collector(self) -> Any:
        """What collects the batches, as it was handed over."""
        if "collector" not in vars(self):
            raise AttributeError
        return vars(self)["collector"]

    @collector.setter
    def collector(self, collector: Any) -> None:
        vars(self)["collector"] = collector

    def _make_parts(self, hooks: Iterable[Any], evaluator: Any, assembly: Assembly) -> TrainerParts:
        """Return the parts that the arguments stand for, registered in the assembly."""
        context = assembly.context
        collector = made.as_collector(self.collector, self.async_collection)
        loss = self.compute_loss if is_overridden(self, "compute_loss") else self.loss_module
        loop_hooks = made.make_hooks(assembly, hooks, lambda: self.progress_bar, self.auto_log_optim_steps)
        buffer = adapted(self.replay_buffer)
        made.register_handed_over(assembly, self.loss_module, collector=collector, buffer=buffer, evaluator=evaluator)
        parts = assembly.trainer_parts(
            model=context.built.get("model", self.loss_module),
            collector=collector,
            buffer=made.make_buffer(self, collector, loop_hooks),
            learner=made.make_learner(loss, loop_hooks, context, lambda: self.parts.stateful),
            hooks=loop_hooks,
            evaluator=evaluator,
            frame_skip=self.frame_skip or 1,
            writers=made.open_writers(self.logger, assembly),
            log_interval=self.log_interval,
            storage=open_storage(
                self.save_trainer_file, self.checkpoint_rotation, self.checkpoint, self.save_trainer_interval
            ),
            update_prefix="" if self.auto_log_optim_steps else None,
        )
        parts.check = partial(made.check_parts, parts, context)
        parts.provenance = assembly.provenance(
            PluginHost(), [type(self).__module__, *made.modules(assembly)], torch.get_num_threads()
        )
        return parts

    def _process_batch_hook(self, batch: TensorDict) -> Any:
        """Return a batch `[env, time]` as the hooks make it, in `train` or outside."""
        if not self._iterating:
            self.hooks.follow_changes()
        return super()._process_batch_hook(batch)

    def optim_steps(self, batch: TensorDict | None) -> None:
        """Run the epochs of optimisation that follow a batch `[env, time]`, with their hooks, in `train` or outside."""
        if not self._iterating:
            self.hooks.follow_changes()
        super().optim_steps(batch)
        if self.auto_log_optim_steps and not self._iterating:
            self.metrics.add({"optim_steps": Last(self.progress.updates)})

    def set_seed(self, seed: int | None = None) -> None:
        """Seed the collector, and torch, NumPy and Python with the seed that follows from it.

        Args:
            seed: default: the attribute `seed`; without one, nothing happens.
        """
        seed = self.seed if seed is None else seed
        if seed is not None:
            made.seed_with(self.parts.collector, seed)

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
            options: `drop` and `fresh`, as `rlcore.state.restoring.restore` takes them.

        Raises:
            StorageError: there is none, it is damaged, or does not fit what is registered.
            ArgumentTypeError: another option.
            PluginError: `map_location` and `mmap` need rlcore-plugin-torchrl, which is not installed.
        """
        load_checkpoint(self, Path(file), self.checkpoint, map_location, mmap, options)
        return self

    def _set_argument(self, name: str, value: Any) -> None:
        """Keep a value that the constructor would take, and let the parts follow; else change nothing."""
        if name not in SETTABLE:
            raise ConfigError(f"{name} is what it was when the trainer was built; hand it to the constructor")
        arguments = vars(self)
        previous = arguments[name]
        arguments[name] = value
        try:
            check(**{argument: arguments[argument] for argument in self._arguments})
            SETTABLE[name](self)
        except BaseException:
            arguments[name] = previous
            raise

    def _log(self, log_pbar: bool = False, **values: Any) -> None:
        """Take values in under their names; `log_pbar`: whether the progress bar shows them."""
        latest = {name: Last(value) if name in self._latest else value for name, value in values.items()}
        self.metrics.add({**latest, "log_pbar": list(values) if log_pbar else []})

    def _record(self, values: Mapping[str, Any], prefix: str = "") -> None:
        """Take values in; the method of a script gets them, where it has one."""
        if not self._has_own_log or not values:
            super()._record(values, prefix)
            return
        self._latest |= {prefix + name for name, value in values.items() if isinstance(value, Last)}
        plain = {name: value.value if isinstance(value, Last) else value for name, value in values.items()}
        shown = bool(plain.pop("log_pbar", False))
        self._log(log_pbar=shown, **{prefix + name: value for name, value in plain.items()})

    def _save(self, at_end: bool = False, news: bool = False) -> None:
        if is_overridden(self, "save_trainer"):
            self.save_trainer(force_save=at_end)
        else:
            super()._save(at_end, news)

    def _registered(self, source: Any) -> None:
        """Move no targets where a script registers a hook that moves them."""
        if self._targets is not None:
            self._targets.step_aside(source)

    def _iteration(self) -> bool:
        self._iterating = True
        try:
            return super()._iteration()
        finally:
            self._iterating = False


def _follow_total_frames(trainer: Trainer) -> None:
    trainer.parts.run = replace(trainer.parts.run, total_frames=horizon(trainer.total_frames))
    trainer.progress.total_frames = trainer.stop_at = trainer.run_info.total_frames


def _follow_frame_skip(trainer: Trainer) -> None:
    trainer.parts.frame_skip = trainer.frame_skip or 1


def _follow_minibatches(trainer: Trainer) -> None:
    """Replace the buffer by one with the new numbers.

    Raises:
        ConfigError: the replay buffer says how many minibatches there are.
    """
    if offers(trainer.replay_buffer, MakesMinibatches):
        raise ConfigError("the replay buffer of this trainer says how many minibatches there are; set it there")
    trainer.parts.buffer = made.make_buffer(trainer, trainer.parts.collector, trainer.hooks)


def _follow_interval(trainer: Trainer) -> None:
    assert trainer.parts.schedule is not None, "a script's trainer has one"
    trainer.parts.schedule.every = Every(trainer.save_trainer_interval)
    trainer.parts.schedule.every.catch_up(trainer.progress)


# attributes that may be set, and what lets the parts follow; the parts of the others were built of them
SETTABLE: Final[Mapping[str, Callable[[Trainer], None]]] = {
    **dict.fromkeys(("clip_grad_norm", "clip_norm", "progress_bar", "seed"), lambda _: None),  # read where used
    "frame_skip": _follow_frame_skip,
    "num_epochs": _follow_minibatches,
    "optim_steps_per_batch": _follow_minibatches,
    "save_trainer_interval": _follow_interval,
    "total_frames": _follow_total_frames,
}
