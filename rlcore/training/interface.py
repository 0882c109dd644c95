"""The trainer as hooks and scripts see it: what they may read, ask and tell.

`rlcore.types.trainer.Trainer` promises it to hooks. What happens in which order is in `loop.py`, what checkpoints carry
in `carried.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlcore.errors import HookError
from rlcore.hooks.operations import Operations, source_of
from rlcore.hooks.points import LoopHooks
from rlcore.loggers.metrics import Metrics
from rlcore.state.restoring import Restored
from rlcore.state.snapshot import Snapshot
from rlcore.training.attributes import PartAttribute
from rlcore.training.carried import Carried, states_of
from rlcore.training.foreign import check_name
from rlcore.training.lockstep import Lockstep
from rlcore.training.lost import lost
from rlcore.training.metric_rows import MetricRows
from rlcore.training.parts import TrainerParts
from rlcore.training.saver import Saver
from rlcore.training.saving import Saving
from rlcore.types import (
    Buffer,
    CollectedBatch,
    Estimator,
    EvaluationResult,
    Evaluator,
    Learner,
    RunInfo,
    Transform,
)
from rlcore.types.foreign import UpdatesPolicyWeights
from rlcore.types.hook_parts import HookObject
from rlcore.types.optional import offers
from rlcore.types.part import defines
from rlcore.types.progress import Progress

if TYPE_CHECKING:
    from tensordict import TensorDict

log = logging.getLogger(__name__)


class TrainerInterface:
    """What hooks and scripts may do with a trainer besides having it train.

    Args:
        parts: what it runs; hooks and scripts see them as attributes.

    Attributes:
        parts: what the trainer runs.
        run_info: name, seed, folder and horizon.
        progress: the clocks.
        model: what is trained.
        buffer: what makes minibatches of the batches.
        learner: what takes the optimisation steps.
        metrics: the metrics of the run.
        hooks: the hooks of the run.
        transforms: between the envs and the policy, in order.
        estimator: what writes advantages into batches; None where nothing does.
        evaluator: what measures the policy; None where nothing does.
        stop_reason: why the run was asked to stop, or None.
        stop_at: where it stops, on the clock of the run; its horizon unless it is told otherwise.
        saving: saves checkpoints when their time has come.
        carried: what checkpoints carry.
    """

    parts: TrainerParts

    run_info = PartAttribute[RunInfo]("run")
    progress = PartAttribute[Progress]()
    model = PartAttribute[Any]()
    buffer = PartAttribute[Buffer]()
    learner = PartAttribute[Learner]()
    metrics = PartAttribute[Metrics]()
    hooks = PartAttribute[LoopHooks]()
    transforms = PartAttribute[list[Transform]]()
    estimator = PartAttribute[Estimator | None]()
    evaluator = PartAttribute[Evaluator | None]()

    # whether an attribute that does not exist is refused; those of a subclass may have any name
    _strict = False
    # what hook objects ask every trainer for; a script hands them over
    loss_module: Any = None
    optimizer: Any = None
    logger: Any = None
    replay_buffer: Any = None
    clip_grad_norm: bool = True
    clip_norm: float | None = None

    def __init__(self, parts: TrainerParts) -> None:
        self.parts = parts
        self.stop_reason: str | None = None
        self.stop_at = parts.progress.total
        self.saving = Saving(parts, self.snapshot, self._checkpoint_saved, self._enter)
        self.carried = Carried(parts)
        self._rows = MetricRows(parts)
        self._lockstep = Lockstep(parts.group)
        self._batch: Any = None
        self._first_now = 0
        self._operations = Operations(self.hooks, lambda: (self.clip_grad_norm, self.clip_norm))
        # hook objects that were told of this trainer
        self._attached: list[Any] = []
        self._enter("setup")

    def __repr__(self) -> str:
        parts = {
            "loss": self.loss_module,
            "collector": self.collector,
            "optimizer": self.optimizer,
            "logger": self.logger,
        }
        kinds = (f"{name}={None if part is None else type(part).__name__}" for name, part in parts.items())
        return f"Trainer({', '.join(kinds)})"

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in vars(self) and not hasattr(type(self), name):  # any name that a script may set
            check_name(name, (*dir(type(self)), *vars(self)) if self._strict else None)
        super().__setattr__(name, value)

    @property
    def collector(self) -> Any:
        """What collects the batches."""
        return self.parts.collector

    @property
    def collected_frames(self) -> int:
        """Environment frames collected so far."""
        return self.progress.frames

    @collected_frames.setter
    def collected_frames(self, frames: int) -> None:
        self.progress.frames = int(frames)

    def request_stop(self, reason: str | None = None) -> None:
        """Ask the run to stop; the iteration is finished, every hook of it runs, the final checkpoint is saved."""
        self.stop_reason = self.stop_reason or reason or "a stop was requested"

    @property
    def done(self) -> bool:
        """Whether the loop would stop here."""
        return self._lockstep.ends(self.parts.progress.now, self.stop_reason is not None, self.stop_at)

    @property
    def batch(self) -> TensorDict | None:
        """The latest batch `[env, time]`; the next iteration may overwrite its tensors."""
        if isinstance(self._batch, CollectedBatch):
            self._batch = self._batch.to_tensordict()
        return self._batch

    @property
    def seconds_trained(self) -> float:
        """Seconds spent collecting and optimising in this process."""
        return self._rows.seconds_trained

    @property
    def done_here(self) -> int:
        """How far this process took the run, on its clock; after a resume, since."""
        return self.parts.progress.now - self._first_now

    def evaluate(self) -> EvaluationResult:
        """Evaluate the policy now.

        Raises:
            RuntimeError: the run has no evaluator.
        """
        parts = self.parts
        if parts.evaluator is None:
            raise RuntimeError("the run has no evaluator: add a section [evaluator] to the config")
        self._enter("evaluating")
        result = parts.evaluator.evaluate()
        parts.evaluations.take(result, trained=parts.progress.updates > 0)
        parts.metrics.add({"return": result.returns_array(), "length": result.lengths_array()}, "evaluation/")
        for policy, returns in result.returns_by_policy().items():
            parts.metrics.extend(f"evaluation/return/{policy}", returns)
        parts.hooks.evaluation(result, self)
        return result

    @property
    def last_evaluation(self) -> EvaluationResult | None:
        """The latest evaluation of the run."""
        return self.parts.evaluations.last

    @property
    def best_evaluation(self) -> EvaluationResult | None:
        """The evaluation with the highest mean return, of those after the first update."""
        return self.parts.evaluations.best

    def save(self) -> Path | None:
        """Save a checkpoint now and return its folder; None for a run that writes nothing.

        Raises:
            NumericalError: a tensor of the model or an optimizer is not finite.
            StorageError: it cannot be written.
        """
        return self.saving.now()

    def save_trainer(self, force_save: bool = False) -> Path | None:
        """Save a checkpoint if one is due, or in any case; return its folder, or None where nothing was saved."""
        if self.saver is None:
            return None
        if force_save or self.saver.due(self.progress, None):
            return self.save()
        return None

    @property
    def saver(self) -> Saver | None:
        """What writes checkpoints; None for a run that writes nothing."""
        return self.saving.saver

    @property
    def last_checkpoint(self) -> Path | None:
        """Folder of the latest checkpoint of this process."""
        return self.saver.last if self.saver is not None else None

    @property
    def why_inexact(self) -> tuple[str, ...]:
        """Why a resume from here would not give the bits of an uninterrupted run; empty where it would."""
        return self.parts.provenance.inexact

    @property
    def app_state(self) -> dict[str, Any]:
        """Everything that takes part in checkpoints, by name."""
        return dict(self.parts.stateful)

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
        source = source_of(op)
        self._registered(source)
        if _is_hook_object(source) and not any(source is hook for hook in self._attached):
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
        restored = self.carried.register(module_name, module)
        self._operations.name(module, module_name)
        if restored:
            self._tell_collector()

    def compute_loss(self, sub_batch: TensorDict, method: str | None = None) -> Any:
        """Return the losses of a sub-batch, of the loss module or of one of its methods."""
        if self.loss_module is None:
            raise HookError("compute_loss: there is no loss_module")
        # any method that the caller names
        return (self.loss_module if method is None else getattr(self.loss_module, method))(sub_batch)

    def lost(self) -> dict[str, int]:
        """Return what the run lost without ending, by cause: episodes, updates, checkpoints, rows of logs."""
        return lost(self.parts, self.saver)

    def snapshot(self) -> Snapshot:
        """Return the state of everything, which shares the tensors of the parts until it is `copied`."""
        return Snapshot.of(self.state_dict(), self.parts.progress, self._evaluation_here())

    def state_dict(self) -> dict[str, Any]:
        """Return the state of everything that has one, by component name."""
        self.parts.metrics.drain()
        return states_of(self.parts.stateful)

    def load_state_dict(
        self, states: Mapping[str, Any], notes: Mapping[str, str] | None = None, **options: Any
    ) -> list[Restored]:
        """Restore everything that has state; return what became of each component. `options` are those of `restore`.

        What a script has yet to register as a module waits for that.
        """
        report = self.carried.restore(states, notes or {}, **options)
        progress = self.parts.progress
        self._first_now = progress.now
        if self.saver is not None:
            self.saver.saved_at = progress.now
        self._tell_collector()
        return report

    def _registered(self, source: Any) -> None:
        """Hear of an object of which an operation was registered."""

    def _tell_collector(self) -> None:
        """Let a collector that acts with copies of the weights have the restored ones."""
        if offers(self.collector, UpdatesPolicyWeights):
            self.collector.update_policy_weights_()

    def _evaluation_here(self) -> float | None:
        """Return the mean return of the evaluation that was made here, if there was one."""
        result = self.last_evaluation
        return result.mean_return if result is not None and result.frames == self.parts.progress.now else None

    def _checkpoint_saved(self, path: Path) -> None:
        self.parts.hooks.checkpoint_saved(path, self)

    def _enter(self, phase: str) -> None:
        """Note what the loop does now, for messages and for the watchdog."""
        self._phase = phase
        self.parts.heart.beats += 1


def _is_hook_object(source: object) -> bool:
    """Return whether an object registers itself and takes note of its trainer."""
    return defines(source, HookObject.register) and defines(source, HookObject.attach)
