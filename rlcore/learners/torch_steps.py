"""Whether anybody wants to be called when an optimizer of torch steps, so that its own `step` must be called."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any, Final

import torch
from torch.optim import optimizer as torch_optimizer

_FOLDER: Final = str(Path(torch.optim.__file__).parent)


class WatchedStep:
    """What would be called besides torch's own kernel if `optimizer.step()` were called, as it is now.

    Args:
        optimizer: of torch.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._own = vars(optimizer).get("step")
        self._of_class = type(optimizer).step

    def is_current(self) -> bool:
        """Return whether it is still so and nothing was registered; cheap enough to ask before every step."""
        optimizer = self._optimizer
        return (
            optimizer.__dict__.get("step") is self._own
            and type(optimizer).step is self._of_class
            and not (optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks)
            and not (torch_optimizer._global_optimizer_pre_hooks or torch_optimizer._global_optimizer_post_hooks)
        )


def steps_as_torch_does(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether `optimizer.step()` runs torch's code and nobody else's: no hook, no patch, no wrapper.

    The wrappers that torch's schedulers and profiler put around it do not count.
    """
    return WatchedStep(optimizer).is_current() and _is_of_torch(optimizer.step)


def _is_of_torch(step: Any) -> bool:
    """Return whether a function and everything that it wraps are defined in the folder of torch's optimizers."""
    layer = getattr(step, "__func__", step)
    while isinstance(layer, types.FunctionType):
        if not layer.__code__.co_filename.startswith(_FOLDER):
            return False
        if not hasattr(layer, "__wrapped__"):
            return True
        layer = layer.__wrapped__
    return False
