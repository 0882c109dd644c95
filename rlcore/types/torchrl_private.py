"""What objects of TorchRL have for themselves and rlcore reads: what a new version of TorchRL may change."""

from __future__ import annotations

from collections.abc import Sized
from typing import Protocol


class Prefetching(Protocol):
    """A replay buffer that can sample ahead.

    Attributes:
        _prefetch: whether it does.
    """

    _prefetch: bool


class SamplesAhead(Protocol):
    """A replay buffer that sampled ahead.

    Attributes:
        _prefetch_queue: what is waiting to be taken.
    """

    _prefetch_queue: Sized
