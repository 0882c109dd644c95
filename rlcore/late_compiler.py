"""torch's compiler, imported when something is compiled and not before.

To import `torch._dynamo` takes as long as to import torch. tensordict imports it to mark a few functions for it, and
torch's optimizers to keep it out of some of their methods. Until it is there nobody reads such marks. So they wait, and
are made as soon as it has been imported, by whomever.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import FunctionType, ModuleType
from typing import Any, Final

_COMPILER: Final = "torch._dynamo"
# of `torch.compiler`: each marks a function and returns it
_MARKS: Final = ("allow_in_graph", "assume_constant_result")
# what a method that the compiler shall not see calls in its place; torch sets it at the first call
_UNSEEN: Final = "__dynamo_disable"

_waiting: list[Callable[[], object]] = []


def put_off() -> None:
    """Let the compiler wait, unless it has been imported already."""
    if _COMPILER in sys.modules:
        return
    for name, then in _THEN.items():
        if name in sys.modules:
            then(sys.modules[name])
    sys.meta_path.insert(0, _Follower())


class _Follower:
    """Does what belongs to a module right after it was imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that something follows."""
        then = _THEN.get(fullname)
        spec = None if then is None else PathFinder.find_spec(fullname, path, target)
        if then is None or spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_follow(module: ModuleType) -> None:
            execute(module)
            then(module)

        spec.loader.exec_module = execute_and_follow  # type: ignore[method-assign]
        return spec


def _marks_wait(compiler: ModuleType) -> None:
    """Let the functions of `torch.compiler` that mark a function do so later."""
    for name in _MARKS:
        if name in vars(compiler):
            setattr(compiler, name, _waits(vars(compiler)[name]))


def _waits(mark: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def mark_later(fn: Any) -> Any:
        if _COMPILER in sys.modules or not callable(fn):
            return mark(fn)
        _waiting.append(lambda: mark(fn))
        return fn

    mark_later.__doc__ = mark.__doc__
    return mark_later


def _optimizers_run(module: ModuleType) -> None:
    """Let the methods of optimizers that the compiler shall not see run as they are, while it is not there."""
    for method in vars(module.Optimizer).values():
        if isinstance(method, FunctionType) and method.__code__.co_filename.endswith("_compile.py"):
            _run_as_it_is(vars(method)["__wrapped__"])


def _run_as_it_is(hidden: Any) -> None:
    setattr(hidden, _UNSEEN, hidden)
    _waiting.append(lambda: delattr(hidden, _UNSEEN))


def _catch_up(_: ModuleType) -> None:
    """Make all marks that waited."""
    while _waiting:
        _waiting.pop(0)()


_THEN: Final[dict[str, Callable[[ModuleType], None]]] = {
    "torch.compiler": _marks_wait,
    "torch.optim.optimizer": _optimizers_run,
    _COMPILER: _catch_up,
}
