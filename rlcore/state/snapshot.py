"""The snapshot of a run: the states of its components as JSON and named tensors, with their hashes.

The room `checkpoints/` writes it to disk.
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

# so many times the cost of a copy pass before the next: half a percent of the time
_COST_FACTOR: Final = 200
_LARGEST_BYTES: Final = 256 << 20


@dataclass(frozen=True)
class Snapshot:
    """States of a run at one moment, as a checkpoint holds them.

    Attributes:
        tree: component name to its state as JSON, with names in the place of tensors.
        tensors: by name.
        progress: the clocks.
        evaluation: mean return of the evaluation at the same frame, if there was one.
        names: component name to the names of its tensors.
    """

    tree: dict[str, Any]
    tensors: dict[str, Tensor]
    progress: dict[str, Any]
    evaluation: float | None = None
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, states: Mapping[str, Any], progress: Progress, evaluation: float | None = None) -> Snapshot:
        """Return a snapshot of states; it shares their tensors until it is `copied`.

        Args:
            states: component name to state.
            progress: the clocks.
            evaluation: mean return of the evaluation at this frame, if any.

        Raises:
            StorageError: a state holds an object that a checkpoint cannot hold.
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
        """Return a snapshot of the parts that a checkpoint holds."""
        return cls(tree, tensors, progress, evaluation, {name: tensor_names(state) for name, state in tree.items()})

    def copied(self, into: Mapping[str, Tensor] = MappingProxyType({})) -> Snapshot:
        """Return a copy of the snapshot, which training does not change.

        Args:
            into: tensors of an earlier copy that nobody needs any more. Those of the same name, shape and dtype are
                written over, which is faster than new memory.
        """
        return replace(self, tensors={name: _copy(tensor, into.get(name)) for name, tensor in self.tensors.items()})

    @property
    def frames(self) -> int:
        """Environment frames so far."""
        return int(self.progress["frames"])

    @property
    def reached(self) -> int:
        """Frames or updates so far, whichever the length of the run is counted in."""
        return reached(self.progress)

    @property
    def place(self) -> str:
        """Moment of the snapshot for messages, such as `frame 1000`."""
        return f"{clock_of(self.progress)[:-1]} {self.reached}"

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.nbytes for tensor in self.tensors.values())

    def states(self) -> dict[str, Any]:
        """Return component name to state, as `state_dict` returned it."""
        return {component: unflatten(state, self.tensors) for component, state in self.tree.items()}

    def digests(self) -> dict[str, str]:
        """Return a hash of each component (XXH3, 128 bits) over its JSON and its tensors."""
        return {component: self._digest(component) for component in self.tree}

    def not_finite(self, components: Iterable[str]) -> list[str]:
        """Return the names of tensors of these components with an infinity or NaN."""
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
    """Return whether every element is finite."""
    # a finite sum proves it in one pass without a mask; a sum that is not may have overflowed
    return math.isfinite(float(tensor.sum())) or bool(torch.isfinite(tensor).all())


def add_tensor(digest: xxhash.xxh3_128, name: str, tensor: Tensor) -> None:
    """Add the name, the dtype, the shape and the elements of a tensor to a hash."""
    digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    for piece in pieces(bytes_of(plain)):
        digest.update(piece)


def training_digest(digests: Mapping[str, str], observers: Iterable[str]) -> str:
    """Return one hash over the components that training depends on.

    Args:
        digests: component name to hash.
        observers: the components that only watch: loggers, metrics, progress bars.
    """
    watching = set(observers)
    of_training = {name: digest for name, digest in sorted(digests.items()) if name not in watching}
    return xxhash.xxh3_128_hexdigest(json.dumps(of_training).encode())


class LastGoodState:
    """Keeps a copy of a recent snapshot in memory, for a checkpoint after a failure.

    The copies take at most half a percent of the time, so not every iteration makes one. A state of more than 256 MiB
    is never copied; a failed run then goes on from its latest checkpoint.

    Attributes:
        snapshot: the latest one, or None.
    """

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        # the least of five counts: one copy that a busy machine slows down does not put off the next for long
        self._costs: deque[float] = deque(maxlen=5)
        self._next = 0.0
        self._reached = -1

    def due(self, now: int) -> bool:
        """Return whether it is time for a copy, at `now` frames or updates."""
        return now != self._reached and time.monotonic() >= self._next

    def keep(self, take: Callable[[], Snapshot]) -> None:
        """Keep a copy of the snapshot that `take` returns, unless it is too large."""
        began = time.monotonic()
        snapshot = take()
        if snapshot.nbytes > _LARGEST_BYTES:
            self.snapshot, self._next = None, float("inf")
            return
        self.hold(snapshot)
        self._reached = snapshot.reached
        now = time.monotonic()
        first = not self._costs  # slower than the next ones, as it allocates and warms up
        self._costs.append(now - began)
        self._next = now if first else now + _COST_FACTOR * min(self._costs)

    def hold(self, snapshot: Snapshot) -> None:
        """Replace the kept snapshot by a copy of this one."""
        self.snapshot = snapshot.copied()
