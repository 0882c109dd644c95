"""Several memories of one model, whose states lie side by side in the one that is carried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from rlcore_plugin_recurrent.body import Body
from rlcore_plugin_recurrent.cell import Step


class Remembers(Protocol):
    """A part with a memory of its own.

    Attributes:
        body: the memory.
    """

    body: Body


class Acts(Remembers, Protocol):
    """One that acts."""

    def raw(self) -> Step:
        """Return a step of rows without gradients, from the state of its own memory to outputs and its next state."""
        ...


def places(bodies: Mapping[str, Body]) -> dict[str, slice]:
    """Return where the state of each memory lies in the carried one, in the order in which they are given.

    Args:
        bodies: the memories by the name of their part.
    """
    slices: dict[str, slice] = {}
    begin = 0
    for name, body in bodies.items():
        end = begin + body.state_size
        slices[name] = slice(begin, end)
        begin = end
    return slices


def initial_states(parts: Sequence[Remembers], rows: int) -> Tensor:
    """Return the state with which episodes begin, `[row, all sizes]`; that of the one part, where it is alone."""
    states = [part.body.cell.initial_state(rows) for part in parts]
    return states[0] if len(states) == 1 else torch.cat(states, -1)


def joint_step(acting: Acts, parts: Sequence[Remembers]) -> Step:
    """Return a step of the part that acts, which brings the memories of all parts on.

    Those that do not act stop behind their memory: their outputs are nobody's.

    Args:
        acting: one of the parts.
        parts: in the order of their states.

    Returns:
        Observations `[row, *shape]`, states `[row, all sizes]` and `first` `[row]` to the outputs of the acting part,
        and the next states.
    """
    if len(parts) == 1:
        return acting.raw()
    sizes = [part.body.state_size for part in parts]
    number = next(number for number, part in enumerate(parts) if part is acting)
    steps = [acting.raw() if part is acting else part.body.raw() for part in parts]

    def step(observation: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        states = torch.split(state, sizes, -1)
        outputs = [body(observation, memory, first) for body, memory in zip(steps, states, strict=True)]
        return outputs[number][0], torch.cat([following for _, following in outputs], -1)

    return step
