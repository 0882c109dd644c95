"""The resolved loop points: one typed method per point, over tuples of plain functions looked up once at setup.

pluggy marks, validates and orders the implementations; it is not called inside the loop. The specs themselves are
in `hookspecs.py`.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pluggy

from rlcore.errors import HookError, PluginError, did_you_mean
from rlcore.hookspecs import POINTS, PROJECT, LifeSpecs, LoopSpecs, Point

if TYPE_CHECKING:
    from pathlib import Path

    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.trainer import Trainer
    from rlcore.types import Episode, EvaluationResult, Key, Learner

log = logging.getLogger(__name__)

_MARK = f"{PROJECT}_impl"


@dataclass
class Hook:
    """A hook instance with its name and whose it is.

    Attributes:
        seconds: spent in it so far.
    """

    name: str
    instance: Any
    owner: str = "this script"
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"hook {self.name!r} ({self.owner})"


@dataclass(frozen=True)
class Implementation:
    """One function of one hook at one point, called with all arguments of the spec."""

    hook: Hook
    point: str
    call: Callable[..., Any]

    def blame(self, error: BaseException) -> None:
        """Say in a note on `error` which hook raised it, and where."""
        error.add_note(f"raised by {self.hook} at point {self.point!r}")

    def wrong_return(self, found: Any, expected: str) -> HookError:
        """Return the error for a return value of a wrong type."""
        return HookError(
            f"{self.hook} at point {self.point!r} returned {type(found).__name__}; expected {expected}. "
            "Return the new value, or None to leave it as it is."
        )

    def not_an_error(self, found: BaseException) -> HookError:
        """Return the error for what ends programs or loops elsewhere, and would end the run here without a word."""
        return HookError(
            f"{self.hook} at point {self.point!r} raised {type(found).__name__}: a hook cannot exit; "
            "to end the run, call trainer.request_stop(reason)"
        )


class _Handle:
    """What pluggy sees of a hook: only its marked functions, compared by identity."""

    def __init__(self, hook: Hook) -> None:
        self.hook = hook
        for name in marked(hook.instance):
            setattr(self, name, getattr(hook.instance, name))


def marked(instance: Any) -> list[str]:
    """Return the names of the attributes of `instance` that carry `@hookimpl`, without running properties."""
    names = []
    for name in dir(instance):
        static = inspect.getattr_static(instance, name)
        function = static.__func__ if isinstance(static, staticmethod | classmethod) else static
        if getattr(function, _MARK, None) is not None:
            names.append(name)
    return names


def check_marks(hook: Hook) -> None:
    """Refuse a hook that implements nothing, an unknown point, or a wrapper.

    Raises:
        PluginError: names the hook and the nearest point.
    """
    names = marked(hook.instance)
    if not names:
        raise PluginError(f"{hook} implements no point: mark its methods with @hookimpl")
    for name in names:
        if name not in POINTS:
            raise PluginError(f"{hook} implements {name!r}, which is not a point{did_you_mean(name, POINTS)}")
        options = getattr(getattr(hook.instance, name), _MARK)
        if options.get("wrapper") or options.get("hookwrapper"):
            raise PluginError(
                f"{hook} wraps {name!r}; wrappers are refused on loop points: they would cost a generator per call. "
                "Use the points before and after it."
            )
        _check_arguments(hook, name)


def _check_arguments(hook: Hook, name: str) -> None:
    known = POINTS[name].arguments
    for parameter in inspect.signature(getattr(hook.instance, name)).parameters.values():
        passed = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if passed and parameter.default is parameter.empty and parameter.name not in known:
            raise PluginError(
                f"{hook} at point {name!r} asks for {parameter.name!r}, which the point has not"
                f"{did_you_mean(parameter.name, known)}; it has {', '.join(known)}"
            )


def _adapter(function: Callable[..., Any], names: tuple[str, ...], point: Point) -> Callable[..., Any]:
    """Return a callable that takes every argument of the point and passes on those that `function` asks for."""
    if names == point.arguments:
        return function
    source = f"lambda {', '.join(point.arguments)}: function({', '.join(names)})"
    return eval(source, {"function": function})  # type: ignore[no-any-return]


def resolve(hooks: Iterable[Hook]) -> dict[str, tuple[Implementation, ...]]:
    """Return the implementations of each point in call order, which is the order of `hooks`.

    Raises:
        PluginError: a hook cannot be used: see `check_marks`; or asks for an argument that its point has not.
    """
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(LoopSpecs)
    manager.add_hookspecs(LifeSpecs)
    for hook in reversed(list(hooks)):  # pluggy calls the last registered first
        check_marks(hook)
        try:
            manager.register(_Handle(hook))
        except pluggy.PluginValidationError as error:
            raise PluginError(f"{hook} cannot be used: {error}") from error
    return {name: _implementations(manager, point) for name, point in POINTS.items()}


def _implementations(manager: pluggy.PluginManager, point: Point) -> tuple[Implementation, ...]:
    caller = getattr(manager.hook, point.name)
    found = []
    for implementation in reversed(caller.get_hookimpls()):
        call = _adapter(implementation.function, tuple(implementation.argnames), point)
        found.append(Implementation(implementation.plugin.hook, point.name, call))
    return tuple(found)


class LoopHooks:
    """Calls the loop points. Built once; a point that nothing implements costs one method call.

    Args:
        hooks: hook instances in call order.

    Raises:
        PluginError: a hook cannot be used, or two hooks own the same point.
    """

    def __init__(self, hooks: Iterable[Hook] = ()) -> None:
        self.hooks = tuple(hooks)
        self._points = resolve(self.hooks)
        for name, point in POINTS.items():
            owners = self._points[name]
            if point.kind == "owner" and len(owners) > 1:
                names = " and ".join(str(owner.hook) for owner in owners)
                raise PluginError(f"point {name!r} has one owner, but {names} implement it; disable one of them")
        self._pre_epoch = self._points["pre_epoch"]
        self._process_optim_batch = self._points["process_optim_batch"]
        self._post_loss = self._points["post_loss"]
        self._optimizer = self._points["optimizer"]
        self._post_optim = self._points["post_optim"]
        self._post_optim_log = self._points["post_optim_log"]
        self._warned: set[str] = set()

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

    def pre_steps_log(self, batch: TensorDict, trainer: Trainer) -> Mapping[str, Any]:
        """Collect metrics before optimisation."""
        return self._collect(self._points["pre_steps_log"], batch, trainer)

    def pre_optim_steps(self, batch: TensorDict, trainer: Trainer) -> None:
        """Notify before the first epoch."""
        _notify(self._points["pre_optim_steps"], batch, trainer)

    def post_steps(self, batch: TensorDict, trainer: Trainer) -> None:
        """Notify after all epochs."""
        _notify(self._points["post_steps"], batch, trainer)

    def post_steps_log(self, batch: TensorDict, trainer: Trainer) -> Mapping[str, Any]:
        """Collect metrics after optimisation."""
        return self._collect(self._points["post_steps_log"], batch, trainer)

    # inner points

    def pre_epoch(self, batch: TensorDict, learner: Learner) -> TensorDict:
        """Run the pipeline over the batch before an epoch."""
        return _tensordict_pipeline(self._pre_epoch, batch, learner)

    def process_optim_batch(self, minibatch: Mapping[Key, Tensor], learner: Learner) -> Mapping[Key, Tensor]:
        """Run the pipeline over a minibatch."""
        for implementation in self._process_optim_batch:
            result = _call(implementation, minibatch, learner)
            if result is not None:
                if not hasattr(result, "items"):
                    raise implementation.wrong_return(result, "a mapping of tensors, or None")
                minibatch = result
        return minibatch

    def post_loss(
        self, losses: dict[str, Tensor], minibatch: Mapping[Key, Tensor], learner: Learner
    ) -> dict[str, Tensor]:
        """Run the pipeline over the losses."""
        for implementation in self._post_loss:
            result = _call(implementation, losses, minibatch, learner)
            if result is not None:
                if not isinstance(result, dict):
                    raise implementation.wrong_return(result, "a dict of tensors, or None")
                losses = result
        return losses

    def optimizer(
        self, losses: dict[str, Tensor], minibatch: Mapping[Key, Tensor], learner: Learner
    ) -> Mapping[str, Tensor]:
        """Let the owning hook do backward and step; only called when `used("optimizer")`."""
        (implementation,) = self._optimizer
        result = _call(implementation, losses, minibatch, learner)
        if not isinstance(result, Mapping):
            raise implementation.wrong_return(result, "a mapping of metrics")
        return result

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
        return {**metrics, **self._collect(self._post_optim_log, metrics, minibatch, learner)}

    def post_epoch(self, batch: TensorDict, learner: Learner) -> None:
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

    def _collect(self, implementations: tuple[Implementation, ...], *arguments: Any) -> Mapping[str, Any]:
        """Merge the mappings of a collect point; `log_pbar` marks the keys of its own mapping."""
        merged: dict[str, Any] = {}
        sources: dict[str, str] = {}
        for implementation in implementations:
            result = _call(implementation, *arguments)
            if result is None:
                continue
            if not isinstance(result, Mapping):
                raise implementation.wrong_return(result, "a mapping of metrics, or None")
            show = bool(result.get("log_pbar", False))
            for key, value in result.items():
                if key == "log_pbar":
                    continue
                key = self._free_key(key, implementation, merged, sources)
                merged[key] = value
                if show:
                    merged.setdefault("log_pbar", set()).add(key)
        return merged

    def _free_key(
        self, key: str, implementation: Implementation, merged: dict[str, Any], sources: dict[str, str]
    ) -> str:
        """Return `key`, or a key with the hook's name when another hook of the point returned it already."""
        name = implementation.hook.name
        if key not in sources:
            sources[key] = name
            return key
        if key in merged:
            own = f"{sources[key]}/{key}"
            merged[own] = merged.pop(key)
            shown = merged.get("log_pbar", set())
            if key in shown:
                shown.remove(key)
                shown.add(own)
        if key not in self._warned:
            self._warned.add(key)
            log.warning(
                "metric %r is returned by hooks %r and %r at %r; both are kept under the hook's name",
                key,
                sources[key],
                name,
                implementation.point,
            )
        return f"{name}/{key}"


def _call(implementation: Implementation, *arguments: Any) -> Any:
    began = perf_counter()
    try:
        return implementation.call(*arguments)
    except (SystemExit, StopIteration) as error:
        raise implementation.not_an_error(error) from error
    except Exception as error:
        implementation.blame(error)
        raise
    finally:
        implementation.hook.seconds += perf_counter() - began


def _notify(implementations: Iterable[Implementation], *arguments: Any) -> None:
    for implementation in implementations:
        result = _call(implementation, *arguments)
        if result is not None:
            raise implementation.wrong_return(result, "None: this point only notifies")


def _notify_isolated(implementations: Iterable[Implementation], *arguments: Any) -> None:
    for implementation in implementations:
        try:
            _call(implementation, *arguments)
        except Exception:
            log.exception(
                "%s failed at point %r; the run ends as it would have", implementation.hook, implementation.point
            )


def _tensordict_pipeline(implementations: tuple[Implementation, ...], value: TensorDict, owner: Any) -> TensorDict:
    for implementation in implementations:
        result = _call(implementation, value, owner)
        if result is not None:
            if not hasattr(result, "batch_size"):
                raise implementation.wrong_return(result, "a TensorDict, or None")
            value = result
    return value
