"""The state of a run at one moment: its structure as JSON, its tensors by name, and a hash of each component.

Writing it to disk is in the room `checkpoints/`.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

import torch
import xxhash
from torch import Tensor

from rlcore.state.memory import bytes_of, pieces
from rlcore.state.tree import flatten, tensor_names, unflatten
from rlcore.types.progress import Progress, clock_of, reached

# a copy is made when this many times its own cost have passed since the last
_COST_FACTOR: Final = 200
_LARGEST_BYTES: Final = 256 << 20


@dataclass(frozen=True)
class Snapshot:
    """What a checkpoint holds.

    Attributes:
        tree: component name to its state as JSON, with names in the place of tensors.
        tensors: by name.
        progress: the clocks.
        evaluation: mean return of the evaluation made at the same frame, if there was one.
        names: component name to the names of its tensors.
    """

    tree: dict[str, Any]
    tensors: dict[str, Tensor]
    progress: dict[str, Any]
    evaluation: float | None = None
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, states: Mapping[str, Any], progress: Progress, evaluation: float | None = None) -> Snapshot:
        """Return the snapshot of some states, which shares their tensors until it is `copied`.

        Args:
            states: component name to state.
            progress: the clocks.
            evaluation: mean return of the evaluation made here, if any.

        Raises:
            StorageError: a state holds something that a checkpoint cannot carry.
        """
        tree: dict[str, Any] = {}
        tensors: dict[str, Tensor] = {}
        names: dict[str, tuple[str, ...]] = {}
        for component, state in states.items():
            first = len(tensors)
            tree[component] = flatten(state, component, tensors)
            names[component] = tuple(tensors)[first:]
        return cls(tree, tensors, progress.state_dict(), evaluation, names)

    @classmethod
    def read(
        cls, tree: dict[str, Any], tensors: dict[str, Tensor], progress: dict[str, Any], evaluation: float | None
    ) -> Snapshot:
        """Return the snapshot that a checkpoint was made of; the arguments are its parts."""
        return cls(tree, tensors, progress, evaluation, {name: tensor_names(state) for name, state in tree.items()})

    def copied(self, into: Mapping[str, Tensor] = MappingProxyType({})) -> Snapshot:
        """Return a snapshot that stays as it is while training goes on.

        Args:
            into: tensors that nobody needs any more, such as those of an earlier copy; those of the same name and form
                are written over, which is faster than taking new memory.
        """
        return replace(self, tensors={name: _copy(tensor, into.get(name)) for name, tensor in self.tensors.items()})

    @property
    def frames(self) -> int:
        """Environment frames at this moment."""
        return int(self.progress["frames"])

    @property
    def reached(self) -> int:
        """How far the run was, on its clock."""
        return reached(self.progress)

    @property
    def place(self) -> str:
        """Where the run stood, in words: `frame 1000`."""
        return f"{clock_of(self.progress)[:-1]} {self.reached}"

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.nbytes for tensor in self.tensors.values())

    def states(self) -> dict[str, Any]:
        """Return component name to state, as the components gave it."""
        return {component: unflatten(state, self.tensors) for component, state in self.tree.items()}

    def digests(self) -> dict[str, str]:
        """Return a hash per component (XXH3, 128 bits) over structure, numbers and tensors."""
        return {component: self._digest(component) for component in self.tree}

    def not_finite(self, components: Iterable[str]) -> list[str]:
        """Return the names of the tensors of these components that hold an infinity or NaN."""
        return [
            name
            for component in components
            for name in self.names.get(component, ())
            if self.tensors[name].is_floating_point() and not _is_finite(self.tensors[name])
        ]

    def _digest(self, component: str) -> str:
        digest = xxhash.xxh3_128(json.dumps(self.tree[component], sort_keys=True).encode())
        for name in self.names[component]:
            add_tensor(digest, name, self.tensors[name])
        return digest.hexdigest()


def _copy(tensor: Tensor, into: Tensor | None) -> Tensor:
    fits = into is not None and into.dtype == tensor.dtype and into.shape == tensor.shape
    if into is None or not fits or into.device != tensor.device or into.layout != tensor.layout:
        return tensor.clone()
    return into.copy_(tensor)


def _is_finite(tensor: Tensor) -> bool:
    """Return whether every element is finite; a sum says so at once, unless it overflows or something is not."""
    return math.isfinite(float(tensor.sum())) or bool(torch.isfinite(tensor).all())


def add_tensor(digest: xxhash.xxh3_128, name: str, tensor: Tensor) -> None:
    """Take the name, the type, the shape and the elements of a tensor into a hash."""
    digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    for piece in pieces(bytes_of(plain)):
        digest.update(piece)


def training_digest(digests: Mapping[str, str], observers: Iterable[str]) -> str:
    """Return one hash over the components that training depends on.

    Args:
        digests: component name to hash.
        observers: the components that watch a run and do not change it: loggers, metrics, progress bars.
    """
    left_out = set(observers)
    of_training = {name: digest for name, digest in sorted(digests.items()) if name not in left_out}
    return xxhash.xxh3_128_hexdigest(json.dumps(of_training).encode())


class LastGoodState:
    """Holds the latest kept snapshot. Keeping costs at most half a percent of the time, so some boundaries pass by.

    The cost of a copy is the least of the last five, so that one that was held up does not put off the next for long.
    A state of more than 256 MiB is not copied; then the latest checkpoint is what a failure leaves.

    Attributes:
        snapshot: the latest one, or None.
    """

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        self._costs: deque[float] = deque(maxlen=5)
        self._next = 0.0
        self._reached = -1

    def due(self, now: int) -> bool:
        """Return whether the time has come to keep the state of this moment of the run's clock."""
        return now != self._reached and time.monotonic() >= self._next

    def keep(self, take: Callable[[], Snapshot]) -> None:
        """Keep a copy of what `take` returns, unless that is too large."""
        began = time.monotonic()
        snapshot = take()
        if snapshot.nbytes > _LARGEST_BYTES:
            self.snapshot, self._next = None, float("inf")
            return
        self.hold(snapshot)
        self._reached = snapshot.reached
        now = time.monotonic()
        first = not self._costs  # it pays for what happens once, so it says nothing about the next
        self._costs.append(now - began)
        self._next = now if first else now + _COST_FACTOR * min(self._costs)

    def hold(self, snapshot: Snapshot) -> None:
        """Copy a state in the place of the one before."""
        self.snapshot = snapshot.copied()
