"""Resolving hooks: the points that each implements, checks of its methods, and the order of the calls.

pluggy marks, checks and orders the implementations. `points.py` calls them; `specs.py` declares the points.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pluggy

from rlcore.errors import HookError, PluginError, blame, did_you_mean
from rlcore.hooks.specs import POINTS, PROJECT, LifeSpecs, LoopSpecs, Point

_MARK = f"{PROJECT}_impl"


@dataclass
class Hook:
    """Hook instance with its name and the distribution that it is from.

    Attributes:
        seconds: time spent in its methods so far.
        calls: number of calls so far.
    """

    name: str
    instance: Any
    owner: str = "this script"
    seconds: float = 0.0
    calls: int = 0

    @property
    def internal(self) -> bool:
        """Whether the hook is a part of the command `train`, which the figures of hooks leave out."""
        from rlcore.types import hook_parts, with_defaults  # imported late, as listing plugins does without

        return with_defaults(self.instance, hook_parts.Hook).internal

    def __str__(self) -> str:
        return f"hook {self.name!r} ({self.owner})"


@dataclass(frozen=True)
class Implementation:
    """Function of a hook at a point, called with all arguments of the spec.

    Attributes:
        reads_batch: whether it has the argument `batch` and takes a TensorDict alone.
    """

    hook: Hook
    point: str
    call: Callable[..., Any]
    reads_batch: bool = False

    def blame(self, error: BaseException) -> None:
        """Note on an error which hook raised it at which point."""
        blame(error, f"{self.hook} at point {self.point!r}", HookError)

    def wrong_return(self, value: Any, expected: str) -> HookError:
        """Return the error for a return value of a wrong type."""
        return HookError(
            f"{self.hook} at point {self.point!r} returned {type(value).__name__}; expected {expected}. "
            "Return the new value, or None to leave it as it is."
        )

    def not_an_error(self, error: BaseException) -> HookError:
        """Return the error for `SystemExit` and the like, which would end the run without a message."""
        return HookError(
            f"{self.hook} at point {self.point!r} raised {type(error).__name__}: a hook cannot exit; "
            "to end the run, call trainer.request_stop(reason)"
        )


class _Handle:
    """Shows pluggy the marked functions of a hook alone, and compares by identity."""

    def __init__(self, hook: Hook, names: Iterable[str]) -> None:
        self.hook = hook
        vars(self).update({name: getattr(hook.instance, name) for name in names})

    def __dir__(self) -> Iterable[str]:
        return vars(self)  # pluggy looks at each name, and those of `object` are many times as many


def marked(instance: Any) -> dict[str, Mapping[str, Any]]:
    """Return the options of each `@hookimpl`, by the name of the attribute, without running properties."""
    marks = {}
    for name, static in sorted(_statics(instance).items()):
        function = static.__func__ if isinstance(static, staticmethod | classmethod) else static
        mark = getattr(function, _MARK, None)  # the attribute that pluggy sets
        if mark is not None:
            marks[name] = mark
    return marks


def _statics(instance: Any) -> dict[str, Any]:
    """Return the attributes of a hook, its class or its module as they were written."""
    classes = (instance if isinstance(instance, type) else type(instance)).__mro__
    # not by `dir` and `getattr_static`, which take ten times as long for a class with hundreds of names
    layers = (*reversed(classes), instance)
    return {name: value for layer in layers for name, value in getattr(layer, "__dict__", {}).items()}


def check_marks(hook: Hook) -> Iterable[str]:
    """Refuse a hook that implements nothing, an unknown point, or a wrapper; return the points that it implements.

    Args:
        hook: its instance, or its class.

    Raises:
        PluginError: the message names the hook, and the nearest point to each unknown one.
    """
    marks = marked(hook.instance)
    if not marks:
        raise PluginError(f"{hook} implements no point: mark its methods with @hookimpl")
    problems = [problem for name, mark in marks.items() for problem in _problems(hook, name, mark)]
    if problems:
        raise PluginError("\n  ".join(problems))
    return marks


def _problems(hook: Hook, name: str, mark: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of a marked method of a hook or its class."""
    if name not in POINTS:
        yield f"{hook} implements {name!r}, which is not a point{did_you_mean(name, POINTS)}"
        return
    if mark.get("wrapper") or mark.get("hookwrapper"):
        yield (
            f"{hook} wraps {name!r}; wrappers are refused on loop points: they would cost a generator per call. "
            "Use the points before and after it."
        )
        return
    arguments = POINTS[name].arguments
    for parameter in _parameters(hook.instance, name):
        passed = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if passed and parameter.default is parameter.empty and parameter.name not in arguments:
            yield (
                f"{hook} at point {name!r} asks for {parameter.name!r}, which the point has not"
                f"{did_you_mean(parameter.name, arguments)}; it has {', '.join(arguments)}"
            )


def _parameters(instance: Any, name: str) -> list[inspect.Parameter]:
    """Return the parameters of a method, without `self` where the instance is a class."""
    parameters = list(inspect.signature(getattr(instance, name)).parameters.values())
    bare = isinstance(instance, type) and inspect.isfunction(inspect.getattr_static(instance, name))
    return parameters[1:] if bare else parameters


def _adapter(function: Callable[..., Any], names: tuple[str, ...], point: Point) -> Callable[..., Any]:
    """Return a callable that takes every argument of the point and passes those of the function on."""
    if names == point.arguments:
        return function
    source = f"lambda {', '.join(point.arguments)}: function({', '.join(names)})"
    # compiled once: choosing arguments at each call would cost more than most hooks. The names are those of a signature
    return eval(source, {"function": function})  # type: ignore[no-any-return]


def resolve(hooks: Iterable[Hook]) -> dict[str, tuple[Implementation, ...]]:
    """Return the implementations of each point in call order, which is the order of `hooks`.

    Raises:
        PluginError: a hook cannot be used, see `check_marks`, or has an argument that its point lacks.
    """
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(LoopSpecs)
    manager.add_hookspecs(LifeSpecs)
    for hook in reversed(list(hooks)):  # pluggy calls the last registered hook first
        try:
            manager.register(_Handle(hook, check_marks(hook)))
        except pluggy.PluginValidationError as error:
            raise PluginError(f"{hook} cannot be used: {error}") from error
    return {name: _implementations(manager, point) for name, point in POINTS.items()}


def _implementations(manager: pluggy.PluginManager, point: Point) -> tuple[Implementation, ...]:
    from rlcore.types.collected import takes_columns  # imported late, as listing plugins does without

    caller = getattr(manager.hook, point.name)
    implementations = []
    for implementation in reversed(caller.get_hookimpls()):
        hook, names = implementation.plugin.hook, tuple(implementation.argnames)
        reads_batch = "batch" in names and not takes_columns(hook.instance)
        call = _adapter(implementation.function, names, point)
        implementations.append(Implementation(hook, point.name, call, reads_batch))
    return tuple(implementations)
