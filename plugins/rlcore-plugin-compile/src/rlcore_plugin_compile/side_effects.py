"""What a compiled loss does besides returning tensors: it happens while the graph is made, and never again."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

from torch import Tensor, nn

from rlcore.errors import ConfigError, describe
from rlcore_plugin_compile.torch_private import compiler_errors

Result = TypeVar("Result")

# what a module keeps for torch; a graph is given parameters and buffers, and returns what becomes of them
_OF_TORCH: Final = frozenset(vars(nn.Module()))
# whose globals are their own matter
_LIBRARIES: Final = frozenset(("builtins", "tensordict", "torch", "torchrl", "typing"))
_PLAIN: Final = (bool, int, float, str)
_HOLDERS: Final = (dict, list, tuple, set, deque)


class Attributes:
    """The attributes of a loss and its parts as they are now, with what their lists, dicts and sets hold.

    The plain values and containers among the globals of the Python modules of their classes belong to them.

    Args:
        loss: a module.
    """

    def __init__(self, loss: nn.Module) -> None:
        self._loss = loss
        self._values = self._now()

    def changed(self) -> list[str]:
        """Return the names of those that are other ones by now."""
        now = self._now()
        names = dict.fromkeys((*self._values, *now))
        return [name for name in names if not _same(self._values.get(name), now.get(name))]

    def _now(self) -> dict[str, list[Any]]:
        of_module = {
            f"{prefix}.{name}".removeprefix("."): _contents(value)
            for prefix, module in self._loss.named_modules()
            for name, value in vars(module).items()
            if name not in _OF_TORCH
        }
        kinds = {kind for module in self._loss.modules() for kind in type(module).__mro__}
        files = {kind.__module__ for kind in kinds if kind.__module__.partition(".")[0] not in _LIBRARIES}
        of_files = {
            f"the global {file}.{name}": _contents(value)
            for file in sorted(files & sys.modules.keys())
            for name, value in vars(sys.modules[file]).items()
            if not name.startswith("__") and isinstance(value, (*_PLAIN, *_HOLDERS, Tensor))
        }
        return of_module | of_files


def compiled_without_side_effects(loss: nn.Module, call: Callable[[], Result]) -> Result:
    """Return what the first call of a graph of a loss returns.

    Raises:
        ConfigError: the compiler cannot make one graph of the loss, or the loss changes its own attributes or globals.
    """
    attributes = Attributes(loss)
    kind = type(loss).__name__
    try:
        result = call()
    except compiler_errors() as error:
        told = describe(error)
        reason = " ".join([line.strip() for line in told.splitlines() if line.strip()][:2])
        raise ConfigError(
            f"[learner] compile = true: {kind} cannot be one graph of tensors ({reason}); leave out `if` over a "
            "tensor, tensors kept in attributes and lists, prints and calls of other libraries; or set compile = false"
        ) from error
    if changed := attributes.changed():
        raise ConfigError(
            f"[learner] compile = true: {kind} changes {', '.join(changed)}, which a compiled update does once, when "
            "it is compiled, and never again. Return such figures as metrics, keep tensors in a buffer "
            "(register_buffer), use a hook at post_optim, or set compile = false"
        )
    return result


def _contents(value: Any) -> list[Any]:
    """Return what is compared of a value, which keeps it alive so that nothing else takes its place in memory."""
    if isinstance(value, dict):
        return [value, *(item for pair in value.items() for item in pair)]
    if isinstance(value, _HOLDERS):
        return [value, *value]
    if isinstance(value, Tensor) and not value.is_inference():
        return [value, value._version]
    return [value]


def _same(old: list[Any] | None, new: list[Any] | None) -> bool:
    if old is None or new is None or len(old) != len(new):
        return False
    return all(one is other or _equal(one, other) for one, other in zip(old, new, strict=True))


def _equal(one: Any, other: Any) -> bool:
    """Return whether two objects are equal numbers or words; others are the same or not."""
    return isinstance(one, _PLAIN) and isinstance(other, _PLAIN) and one == other
