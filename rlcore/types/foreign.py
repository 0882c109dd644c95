"""Protocols of objects from other libraries, which scripts pass in; their methods are checked without an import."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol


class TensorDictLike(Protocol):
    """A TensorDict or tensorclass.

    Attributes:
        batch_size: the leading dimensions that all entries share.
    """

    batch_size: Any


class FillsBuffer(Protocol):
    """A collector with a replay buffer of its own."""

    def getattr_rb(self, attr: str) -> Any:
        """Return an attribute of the replay buffer, which may be in another process."""
        ...


class FillsBufferInBackground(FillsBuffer, Protocol):
    """A collector that can fill its replay buffer in the background."""

    def start(self) -> object:
        """Start to collect in the background."""
        ...


class SeedableCollector(Protocol):
    """A collector that can seed its envs."""

    def set_seed(self, seed: int, static_seed: bool = False) -> Any:
        """Seed the envs, each with a seed of its own, and return the next free seed."""
        ...


class WarmsUp(Protocol):
    """A collector that fills its buffer before training begins.

    Attributes:
        init_random_frames: number of random frames before training begins; None for none.
    """

    init_random_frames: int | None


class ShutsDown(Protocol):
    """A collector, a hook, or another object that must be shut down."""

    def shutdown(self) -> object:
        """End its processes and threads."""
        ...


class Stepping(Protocol):
    """An object with a method `step`: a scheduler of torch, an updater of targets, or a policy with exploration."""

    def step(self, *frames: int) -> object:
        """Take a step; a policy takes the frames that its exploration decays by."""
        ...


class UpdatesPolicyWeights(Protocol):
    """A collector with a copy of the weights."""

    def update_policy_weights_(self, weights: Any = None) -> object:
        """Copy the weights again."""
        ...


class Collects(Protocol):
    """A collector of rlcore that a script passes in."""

    def collect(self) -> Any:
        """Return the next batch `[env, time]`."""
        ...


class MakesMinibatches(Protocol):
    """A buffer of rlcore that a script passes in."""

    def minibatches(self) -> Iterable[Any]:
        """Yield the minibatch of each optimisation step."""
        ...


class WithParamGroups(Protocol):
    """An optimizer of torch.

    Attributes:
        param_groups: parameters with their learning rate and other numbers.
    """

    param_groups: list[dict[str, Any]]


class TensorLike(Protocol):
    """A tensor of torch, or an object that can replace one, such as a TensorDict."""

    def numel(self) -> int:
        """Return the number of elements."""
        ...

    def detach(self) -> Any:
        """Return the same values without a gradient."""
        ...


class Annotated(Protocol):
    """A state dict of torch or tensordict.

    Attributes:
        _metadata: versions and batch sizes.
    """

    _metadata: Any
