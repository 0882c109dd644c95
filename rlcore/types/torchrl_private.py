"""What objects of TorchRL have for themselves and rlcore reads: what a new version of TorchRL may change."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any, Protocol


class TakesActionSpec(Protocol):
    """A loss that derives its target entropy from the action space.

    Attributes:
        _action_spec: the spec of actions; None where it is not known yet.
    """

    _action_spec: Any


class WithTargetEntropy(Protocol):
    """A loss with an entropy that policies are to have.

    Attributes:
        _target_entropy: `"auto"`, or a number.
    """

    _target_entropy: Any


class WithWeightSchemes(Protocol):
    """A collector that can be sent weights.

    Attributes:
        _weight_sync_schemes: by destination; None or empty where there are none.
    """

    _weight_sync_schemes: Mapping[str, Any] | None


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
