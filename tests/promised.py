"""What `rlcore.types.trainer` promises of a trainer, and a trainer that offers hooks nothing else."""

from __future__ import annotations

import functools
from typing import Any

from rlcore.core_hooks.base import TrainerHookBase
from rlcore.hooks import points
from rlcore.training.loop import Loop
from rlcore.types.trainer import RunMetrics, ScriptTrainer, Trainer, TrainerHooks

# the classes of hooks that the core and its plugins bring
OURS = ("rlcore.", "rlcore_plugin_")
WITHIN = {"metrics": RunMetrics, "hooks": TrainerHooks}  # of a trainer


def protocols(protocol: type) -> list[type]:
    """Return a protocol and those that it extends."""
    return [base for base in protocol.__mro__ if getattr(base, "_is_protocol", False) and base.__module__ != "typing"]


def attributes(protocol: type) -> set[str]:
    """Return the names of the attributes that may be set as well as read."""
    return {name for base in protocols(protocol) for name in vars(base).get("__annotations__", {})}


def members(protocol: type) -> set[str]:
    """Return the names of everything that a protocol promises."""
    defined = {name for base in protocols(protocol) for name in vars(base) if not name.startswith("_")}
    return defined | attributes(protocol)


class Guarded:
    """Offers what a protocol promises of an object, and fails the test that touches more."""

    def __init__(self, whole: Any, protocol: type) -> None:
        vars(self).update(_whole=whole, _protocol=protocol)

    def __getattr__(self, name: str) -> Any:
        if name not in members(self._protocol):
            raise AssertionError(f"a hook reads {name!r}, which {self._protocol.__name__} does not promise")
        value = getattr(self._whole, name)
        within = WITHIN.get(name) if Trainer in self._protocol.__mro__ else None
        return value if within is None else Guarded(value, within)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in attributes(self._protocol):
            raise AssertionError(f"a hook sets {name!r}, which {self._protocol.__name__} does not let it set")
        setattr(self._whole, name, value)


def guard_hooks(monkeypatch) -> None:
    """Hand every hook of the core and of its plugins a guarded trainer, at points and at its registration."""
    plain_call = points.call

    def call(implementation, *arguments):
        instance = implementation.hook.instance
        if type(instance).__module__.startswith(OURS):
            protocol = ScriptTrainer if isinstance(instance, TrainerHookBase) else Trainer
            arguments = [Guarded(value, protocol) if isinstance(value, Loop) else value for value in arguments]
        return plain_call(implementation, *arguments)

    monkeypatch.setattr(points, "call", call)
    for hook_class in subclasses(TrainerHookBase):
        if hook_class.__module__.startswith(OURS):
            for name in {"attach", "register", "step"} & set(vars(hook_class)):
                monkeypatch.setattr(hook_class, name, _with_guarded(vars(hook_class)[name]))


def subclasses(base: type) -> set[type]:
    """Return a class and everything that is derived from it."""
    return {base}.union(*(subclasses(derived) for derived in base.__subclasses__()))


def _with_guarded(method: Any) -> Any:
    @functools.wraps(method)
    def guarded(self, *arguments, **named):
        values = [Guarded(value, ScriptTrainer) if isinstance(value, Loop) else value for value in arguments]
        return method(self, *values, **named)

    return guarded
