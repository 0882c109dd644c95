"""What torch keeps to itself and is used for speed; each has a public way in its place, for a torch without it.

Names that begin with an underscore may go or change with any version of torch. Each is looked up here, once, when what
uses it is built.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor
from torch.optim import optimizer as torch_optimizer

_FOLDER: Final = str(Path(torch.optim.__file__).parent)


def look_up(owner: object, name: str) -> Any:
    """Return a private attribute of torch, or None where this version has none."""
    return getattr(owner, name, None)


def foreach_norm() -> Callable[[list[Tensor]], Iterable[Tensor]]:
    """Return what takes the norm of each tensor of a list: one call of torch, or else one for each tensor."""
    found = look_up(torch, "_foreach_norm")
    return found if _works(lambda: float(found([torch.full((4,), 2.0)])[0]) == 4.0) else _norms


def foreach_copy() -> Callable[[list[Tensor], list[Tensor]], object]:
    """Return what copies each tensor of the second list into that of the first."""
    found = look_up(torch, "_foreach_copy_")
    return found if _works(lambda: _after(found) == 2.0) else _copy


def foreach_lerp() -> Callable[[list[Tensor], list[Tensor], float], object]:
    """Return what moves each tensor of the first list towards that of the second by a fraction of the way."""
    found = look_up(torch, "_foreach_lerp_")
    return found if _works(lambda: _after(found, 0.25) == 0.5) else _lerp


def _works(trial: Callable[[], bool]) -> bool:
    """Return whether a private function does what it is used for: one of another signature may raise anything."""
    try:
        return trial()
    except Exception:
        return False


def _after(function: Any, *arguments: float) -> float:
    """Return what becomes of a zero that is moved towards a two."""
    target = torch.zeros(1)
    function([target], [torch.full((1,), 2.0)], *arguments)
    return float(target)


def _norms(tensors: list[Tensor]) -> list[Tensor]:
    return [torch.linalg.vector_norm(tensor) for tensor in tensors]


def _copy(targets: list[Tensor], sources: list[Tensor]) -> None:
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)


def _lerp(targets: list[Tensor], sources: list[Tensor], weight: float) -> None:
    for target, source in zip(targets, sources, strict=True):
        target.lerp_(source, weight)


class WatchedStep:
    """What would be called besides torch's own kernel if `optimizer.step()` were called, as it is now.

    Args:
        optimizer: of torch.

    Attributes:
        seen: whether this version of torch shows who watches; where it does not, somebody may.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._own = vars(optimizer).get("step")
        self._of_class = type(optimizer).step
        # torch registers a hook by adding to these mappings, which it never exchanges
        self._hooks = (
            look_up(optimizer, "_optimizer_step_pre_hooks"),
            look_up(optimizer, "_optimizer_step_post_hooks"),
            look_up(torch_optimizer, "_global_optimizer_pre_hooks"),
            look_up(torch_optimizer, "_global_optimizer_post_hooks"),
        )
        self.seen = all(isinstance(hooks, dict) for hooks in self._hooks)

    def is_current(self) -> bool:
        """Return whether it is still so and nothing was registered; cheap enough to ask before every step."""
        optimizer = self._optimizer
        return (
            optimizer.__dict__.get("step") is self._own
            and type(optimizer).step is self._of_class
            and self.seen
            and not any(self._hooks)
        )


def steps_as_torch_does(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether `optimizer.step()` runs torch's code and nobody else's: no hook, no patch, no wrapper.

    The wrappers that torch's schedulers and profiler put around it do not count.
    """
    return WatchedStep(optimizer).is_current() and _is_of_torch(optimizer.step)


def _is_of_torch(step: Any) -> bool:
    """Return whether a function and everything that it wraps are defined in the folder of torch's optimizers."""
    layer = step.__func__ if isinstance(step, types.MethodType) else step
    return _lies_in_folder(inspect.unwrap(layer, stop=lambda inner: not _lies_in_folder(inner)))


def _lies_in_folder(function: object) -> bool:
    return isinstance(function, types.FunctionType) and function.__code__.co_filename.startswith(_FOLDER)
