"""Calling the hooks: a typed method for each loop point, over tuples of functions that `resolution.py` has made.

pluggy is not called inside the loop. The points are declared in `specs.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rlcore.errors import FROM_OUTSIDE, EndOfEpoch, Interruption, PluginError
from rlcore.hooks.resolution import Hook as Hook
from rlcore.hooks.resolution import Implementation, check_marks, resolve
from rlcore.hooks.specs import POINTS
from rlcore.types.foreign import TensorDictLike
from rlcore.types.hook_parts import HookMetrics, under_name_of
from rlcore.types.mappings import is_mapping
from rlcore.types.optional import offers

if TYPE_CHECKING:
    from pathlib import Path

    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.types import Episode, EvaluationResult, Key, Learner
    from rlcore.types.trainer import Trainer

log = logging.getLogger(__name__)


class LoopHooks:
    """Calls the implementations of the loop points; a point without one costs a method call.

    Args:
        hooks: in the order of their calls.

    Attributes:
        collected: metrics of the earlier hooks at a collect point that is being called.
        need_tensordicts: whether a hook reads batches and takes TensorDicts alone.

    Raises:
        PluginError: a hook cannot be used, or two hooks own the same point.
    """

    def __init__(self, hooks: Iterable[Hook] = ()) -> None:
        self.hooks: tuple[Hook, ...] = ()
        self.collected: Mapping[str, Any] = {}
        self._warned: set[str] = set()
        self._next: tuple[Hook, ...] | None = tuple(hooks)
        self.follow_changes()

    def replace(self, old: Iterable[Hook], new: Iterable[Hook]) -> None:
        """Remove hooks, and add others at the end, from the next iteration on.

        Raises:
            PluginError: a new hook cannot be used; then nothing changes.
        """
        new, removed = tuple(new), {id(hook) for hook in old}
        for hook in new:
            check_marks(hook)
        coming = self.hooks if self._next is None else self._next
        self._next = (*(hook for hook in coming if id(hook) not in removed), *new)

    def follow_changes(self) -> None:
        """Apply the last `replace`; the loop calls this between two iterations.

        Raises:
            PluginError: a hook cannot be used, or two hooks own the same point.
        """
        if self._next is None:
            return
        self.hooks, self._next = self._next, None
        self._points = resolve(self.hooks)
        for name, point in POINTS.items():
            owners = self._points[name]
            if point.kind == "owner" and len(owners) > 1:
                names = " and ".join(str(owner.hook) for owner in owners)
                raise PluginError(f"point {name!r} has one owner, but {names} implement it; disable one of them")
        self.need_tensordicts = any(item.reads_batch for point in self._points.values() for item in point)
        # called once per update: an attribute spares the look-up in the dict
        self._process_optim_batch = self._points["process_optim_batch"]
        self._post_loss = self._points["post_loss"]
        self._optimizer = self._points["optimizer"]
        self._post_optim = self._points["post_optim"]
        self._post_optim_log = self._points["post_optim_log"]

    def end_epochs_together(self, vote: Callable[[bool], bool]) -> None:
        """End an epoch in all processes that train together, where a hook ends it in one of them.

        Args:
            vote: takes whether the epoch ends in this process, and returns whether it ends in any.
        """
        process = self.process_optim_batch

        # a step that some processes do not take would wait for them for ever, so they vote before it
        def process_and_vote(minibatch: Mapping[Key, Tensor], learner: Learner) -> Mapping[Key, Tensor]:
            if not self._process_optim_batch:
                return minibatch
            try:
                minibatch = process(minibatch, learner)
                ended = minibatch is None
            except EndOfEpoch:
                ended = True
            if vote(ended):
                raise EndOfEpoch
            return minibatch

        self.process_optim_batch = process_and_vote  # type: ignore[method-assign]  # one process pays nothing for it

    # whether somebody asks for what a device holds of the iteration that collects so many more frames; the loop knows
    asked: Callable[[int], bool] = staticmethod(lambda frames: True)

    def used(self, point: str) -> bool:
        """Return whether any hook implements `point`."""
        return bool(self._points[point])

    def implementations(self, point: str) -> tuple[Implementation, ...]:
        """Return the implementations of `point` in call order."""
        return self._points[point]

    # outer points

    def batch_process(self, batch: TensorDict, trainer: Trainer) -> TensorDict:
        """Run the pipeline over the collected batch."""
        return _tensordict_pipeline(self._points["batch_process"], batch, trainer)

    def pre_steps_log(self, batch: TensorDict | None, trainer: Trainer) -> Mapping[str, Any]:
        """Collect metrics before optimisation."""
        return self._collect(self._points["pre_steps_log"], batch, trainer)

    def pre_optim_steps(self, batch: TensorDict | None, trainer: Trainer) -> None:
        """Notify before the first epoch."""
        _notify(self._points["pre_optim_steps"], batch, trainer)

    def post_optim_complete_log(
        self, updates: int, losses: Mapping[str, Tensor], trainer: Trainer
    ) -> Mapping[str, Any]:
        """Collect metrics after all epochs of an iteration."""
        return self._collect(self._points["post_optim_complete_log"], updates, losses, trainer)

    def post_steps(self, batch: TensorDict | None, trainer: Trainer) -> None:
        """Notify after all epochs."""
        _notify(self._points["post_steps"], batch, trainer)

    def post_steps_log(self, batch: TensorDict | None, trainer: Trainer) -> Mapping[str, Any]:
        """Collect metrics after optimisation."""
        return self._collect(self._points["post_steps_log"], batch, trainer)

    # inner points

    def pre_epoch_log(self, batch: TensorDict | None, learner: Learner) -> Mapping[str, Any]:
        """Collect metrics before an epoch."""
        return self._collect(self._points["pre_epoch_log"], batch, learner)

    def pre_epoch(self, batch: TensorDict | None, learner: Learner) -> TensorDict | None:
        """Run the pipeline over the batch before an epoch."""
        return _tensordict_pipeline(self._points["pre_epoch"], batch, learner)

    def process_optim_batch(self, minibatch: Mapping[Key, Tensor], learner: Learner) -> Mapping[Key, Tensor]:
        """Run the pipeline over a minibatch."""
        for implementation in self._process_optim_batch:
            result = call(implementation, minibatch, learner)
            if result is not None:
                if not is_mapping(result):
                    raise implementation.wrong_return(result, "a mapping of tensors, or None")
                minibatch = result
        return minibatch

    def post_loss(
        self, losses: dict[str, Tensor], minibatch: Mapping[Key, Tensor], learner: Learner
    ) -> dict[str, Tensor]:
        """Run the pipeline over the losses."""
        for implementation in self._post_loss:
            result = call(implementation, losses, minibatch, learner)
            if result is not None:
                if not is_mapping(result):
                    raise implementation.wrong_return(result, "a mapping of tensors, or None")
                losses = result
        return losses

    def optimizer(
        self, losses: dict[str, Tensor], minibatch: Mapping[Key, Tensor], learner: Learner
    ) -> Mapping[str, Tensor]:
        """Let the owning hook do backward and step; only called when `used("optimizer")`."""
        (implementation,) = self._optimizer
        result = call(implementation, losses, minibatch, learner)
        if not is_mapping(result):
            raise implementation.wrong_return(result, "a mapping of metrics")
        return result  # type: ignore[no-any-return]

    def post_optim(self, minibatch: Mapping[Key, Tensor], learner: Learner) -> None:
        """Notify after a step of the optimizers."""
        if self._post_optim:
            _notify(self._post_optim, minibatch, learner)

    def post_optim_log(
        self, metrics: Mapping[str, Tensor], minibatch: Mapping[Key, Tensor], learner: Learner
    ) -> Mapping[str, Any]:
        """Return the metrics of a step together with those of the hooks."""
        if not self._post_optim_log:
            return metrics
        return {**metrics, **self._collect(self._post_optim_log, metrics, minibatch, learner, reserved=metrics)}

    def post_epoch_log(self, batch: TensorDict | None, learner: Learner) -> Mapping[str, Any]:
        """Collect metrics after the minibatches of an epoch."""
        return self._collect(self._points["post_epoch_log"], batch, learner)

    def post_epoch(self, batch: TensorDict | None, learner: Learner) -> None:
        """Notify after the minibatches of an epoch."""
        _notify(self._points["post_epoch"], batch, learner)

    # life cycle

    def setup(self, trainer: Trainer) -> None:
        """Notify that everything is built and restored."""
        _notify(self._points["setup"], trainer)

    def episode_end(self, episode: Episode, trainer: Trainer) -> None:
        """Notify of a finished episode."""
        _notify(self._points["episode_end"], episode, trainer)

    def evaluation(self, result: EvaluationResult, trainer: Trainer) -> None:
        """Notify of an evaluation."""
        _notify(self._points["evaluation"], result, trainer)

    def checkpoint_saved(self, path: Path, trainer: Trainer) -> None:
        """Notify of a committed checkpoint."""
        _notify(self._points["checkpoint_saved"], path, trainer)

    def on_exception(self, error: BaseException, trainer: Trainer) -> None:
        """Notify of the error that ends the run; each hook is isolated."""
        _notify_isolated(self._points["on_exception"], error, trainer)

    def shutdown(self, trainer: Trainer) -> None:
        """Notify of the end, in reverse order; each hook is isolated."""
        _notify_isolated(reversed(self._points["shutdown"]), trainer)

    def _collect(
        self, implementations: tuple[Implementation, ...], *arguments: Any, reserved: Collection[str] = ()
    ) -> Mapping[str, Any]:
        """Merge the metrics of the hooks at a collect point; `log_pbar` marks all keys of its mapping.

        Args:
            implementations: of the point.
            arguments: of the point.
            reserved: names of metrics of the learner.
        """
        if not implementations:  # the usual case, which must cost nothing where an iteration is a single step
            self.collected = {}
            return self.collected
        merged = HookMetrics()
        self.collected = merged
        for implementation in implementations:
            result = call(implementation, *arguments)
            if result is None:
                continue
            if not isinstance(result, Mapping):
                raise implementation.wrong_return(result, "a mapping of metrics, or None")
            show = bool(result.get("log_pbar", False))
            for key, value in result.items():
                if key == "log_pbar":
                    continue
                if not isinstance(key, str):
                    raise implementation.wrong_return(result, f"names of metrics that are text, not {key!r}")
                key = self._free_key(key, implementation, merged, reserved)
                merged[key] = value
                if show:
                    merged.setdefault("log_pbar", set()).add(key)
        return merged

    def _free_key(self, key: str, implementation: Implementation, merged: HookMetrics, names: Collection[str]) -> str:
        """Return the key, with the name of the hook before it where the learner or another hook uses the key too."""
        name = implementation.hook.name
        other = merged.hooks.setdefault(key, name)
        if key not in names and other == name:
            return key
        if key in merged:
            longer = under_name_of(other, key)
            merged[longer] = merged.pop(key)
            merged.hooks[longer] = other
            shown = merged.get("log_pbar", set())
            if key in shown:
                shown.remove(key)
                shown.add(longer)
        if key not in self._warned:
            self._warned.add(key)
            log.warning(
                "metric %r of hook %r at %r is one of %s too; both are kept, that of a hook under its name",
                key,
                name,
                implementation.point,
                "the learner" if key in names else f"hook {other!r}",
            )
        longer = under_name_of(name, key)
        merged.hooks[longer] = name
        return longer


def call(implementation: Implementation, *arguments: Any) -> Any:
    """Call an implementation, measure its time, and note the hook on an error.

    Raises:
        HookError: the hook raised `SystemExit`, `StopIteration` or `GeneratorExit`.
    """
    began = perf_counter()
    try:
        return implementation.call(*arguments)
    except (SystemExit, StopIteration, GeneratorExit) as error:
        raise implementation.not_an_error(error) from error
    except Interruption:  # of a signal or the watchdog, and no fault of the hook
        raise
    except BaseException as error:
        implementation.blame(error)
        raise
    finally:
        implementation.hook.seconds += perf_counter() - began
        implementation.hook.calls += 1


def _notify(implementations: Iterable[Implementation], *arguments: Any) -> None:
    for implementation in implementations:
        result = call(implementation, *arguments)
        if result is not None:
            raise implementation.wrong_return(result, "None: this point only notifies")


def _notify_isolated(implementations: Iterable[Implementation], *arguments: Any) -> None:
    for implementation in implementations:
        try:
            call(implementation, *arguments)
        except FROM_OUTSIDE:
            raise
        except BaseException:
            log.exception(
                "%s failed at point %r; the run ends as it would have", implementation.hook, implementation.point
            )


def _tensordict_pipeline(implementations: tuple[Implementation, ...], value: Any, owner: Any) -> Any:
    for implementation in implementations:
        result = call(implementation, value, owner)
        if result is not None:
            if not offers(result, TensorDictLike):
                raise implementation.wrong_return(result, "a TensorDict, or None")
            value = result
    return value
