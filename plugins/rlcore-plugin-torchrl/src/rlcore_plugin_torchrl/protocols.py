"""What the trainers and builders ask of objects that a script hands over, most of them of TorchRL.

They are asked for by their methods and attributes, as TorchRL is not imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rlcore.types import Progress


class KnowsEnv(Protocol):
    """A collector of TorchRL with envs of its own."""

    def getattr_env(self, attr: str) -> Any:
        """Return an attribute of an env, wherever it lies."""
        ...


class WithStorage(Protocol):
    """A replay buffer of TorchRL.

    Attributes:
        storage: holds its elements.
    """

    storage: Any


class OnDevice(Protocol):
    """A storage of TorchRL, or anything else that lies on a device.

    Attributes:
        device: of torch, or its name.
    """

    device: Any


class OfflineAndOnline(Protocol):
    """A replay buffer of TorchRL with data of another policy and with those of a run.

    Attributes:
        offline_buffer: with the former.
        online_buffer: with the latter.
    """

    offline_buffer: Any
    online_buffer: Any

    def anneal(self, step: int, total_steps: int) -> object:
        """Sample fewer offline data."""
        ...


class TakesKeys(Protocol):
    """A loss or an estimator of TorchRL."""

    def set_keys(self, **keys: Any) -> object:
        """Take the names of entries."""
        ...


class WithLagrange(Protocol):
    """A loss of TorchRL with a Lagrange multiplier, or without.

    Attributes:
        with_lagrange: whether it has one.
    """

    with_lagrange: bool


class WithSpec(Protocol):
    """An env, or a module of TorchRL that makes actions.

    Attributes:
        spec: says what its spaces are.
    """

    spec: Any


class LogsHparams(Protocol):
    """A logger that shows settings."""

    def log_hparams(self, config: Any) -> object:
        """Show them."""
        ...


class Stepping(Protocol):
    """A policy whose exploration decays by its own count."""

    def step(self, frames: int) -> object:
        """Take a step."""
        ...


class ClockFollower(Protocol):
    """A policy whose exploration decays by the clocks of a run."""

    def follow(self, progress: Progress) -> None:
        """Decay by those clocks from here on."""
        ...


# what objects of TorchRL have for themselves, and a new version of it may change


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
