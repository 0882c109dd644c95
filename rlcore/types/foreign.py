"""What objects of other libraries have that scripts hand over.

They are asked for by their methods, as none of these libraries is imported here.
"""

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
    """A collector with a replay buffer of its own, into which it may write."""

    def getattr_rb(self, attr: str) -> Any:
        """Return an attribute of that buffer, wherever it lies."""
        ...


class FillsBufferInBackground(FillsBuffer, Protocol):
    """A collector that can write into its replay buffer while the caller does something else."""

    def start(self) -> object:
        """Begin to."""
        ...


class SeedableCollector(Protocol):
    """A collector whose envs can be seeded, each with a seed of its own."""

    def set_seed(self, seed: int, static_seed: bool = False) -> Any:
        """Seed them, and return the seed for what comes after them."""
        ...


class WarmsUp(Protocol):
    """A collector that fills a buffer before anything is trained.

    Attributes:
        init_random_frames: with which its buffer is filled before anything is trained; None for none.
    """

    init_random_frames: int | None


class ShutsDown(Protocol):
    """A collector, a hook, or another owner of what must be ended."""

    def shutdown(self) -> object:
        """End everything that it started."""
        ...


class Stepping(Protocol):
    """Whatever takes steps: schedulers of torch, updaters of targets, policies whose exploration decays."""

    def step(self) -> object:
        """Take one."""
        ...


class UpdatesPolicyWeights(Protocol):
    """A collector that acts with a copy of the weights."""

    def update_policy_weights_(self, weights: Any = None) -> object:
        """Copy them again."""
        ...


class Collects(Protocol):
    """A collector of rlcore, handed over as an object."""

    def collect(self) -> Any:
        """Return the next batch `[env, time]`."""
        ...


class MakesMinibatches(Protocol):
    """A buffer of rlcore, handed over as an object."""

    def minibatches(self) -> Iterable[Any]:
        """Yield what each optimisation step takes."""
        ...


class WithParamGroups(Protocol):
    """An optimizer of torch.

    Attributes:
        param_groups: parameters with their learning rate and other numbers.
    """

    param_groups: list[dict[str, Any]]


class TensorLike(Protocol):
    """A tensor of torch, or what may stand in its place, such as a TensorDict."""

    def numel(self) -> int:
        """Return how many elements it has."""
        ...

    def detach(self) -> Any:
        """Return it without the graph that it came from."""
        ...


class Annotated(Protocol):
    """A state dict of torch or tensordict.

    Attributes:
        _metadata: versions and batch sizes.
    """

    _metadata: Any
