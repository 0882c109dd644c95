"""Losses that name the parts of them to compile, where one graph of all would take too long to make."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import torch

from rlcore_plugin_compile.graph_pass import graph_pass
from rlcore_plugin_compile.own_code import with_own_code

if TYPE_CHECKING:
    from torch import Tensor

    from rlcore.learners import GradientLearner, Minimise, Turn
    from rlcore.types import Heart

log = logging.getLogger(__name__)

Function: TypeAlias = Callable[..., Any]


@runtime_checkable
class HasParts(Protocol):
    """A loss with parts to compile; what is between them, the optimizers, and hooks run as they are."""

    def compile_parts(self, compiled: Callable[[Function], Function]) -> None:
        """Put compiled functions in the place of parts.

        Args:
            compiled: returns a function compiled; it compiles at its first call, and for each further shape.
        """
        ...


class CompiledParts:
    """Lets a loss compute by compiled parts, and pauses the watchdog while they are compiled.

    Args:
        loss: has the parts.
        device: of the run.
        heart: of the run.
    """

    def __init__(self, loss: HasParts, device: torch.device, heart: Heart) -> None:
        self._heart = heart
        loss.compile_parts(functools.partial(_compiled, options=_options(device)))

    def reload(self) -> None:
        """Do nothing: no part holds a tensor of an optimizer."""

    def around(self, minimise: Minimise, learner: GradientLearner) -> Minimise:
        """Return what takes a turn; the first one compiles, forward and backward."""
        is_first = True

        def minimise_by_parts(turn: Turn) -> Mapping[str, Tensor]:
            nonlocal is_first
            if not is_first:
                return minimise(turn)
            is_first = False
            log.info("compiling the parts of the loss: a few minutes, a few seconds once they are cached")
            with self._heart.pause():
                return minimise(turn)

        return minimise_by_parts


def _compiled(function: Function, options: dict[str, Any]) -> Function:
    def part(*arguments: Any) -> Any:
        return function(*arguments)

    return torch.compile(with_own_code(part), fullgraph=True, dynamic=False, options=options)


def _options(device: torch.device) -> dict[str, Any]:
    return {"post_grad_custom_post_pass": graph_pass()} if device.type == "cpu" else {}
