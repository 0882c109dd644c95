"""What objects of other libraries have, most of all those of TorchRL that scripts hand over.

They are asked for by their methods, as none of these libraries is imported here.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class TensorDictLike(Protocol):
    """A TensorDict or tensorclass.

    Attributes:
        batch_size: the leading dimensions that all entries share.
    """

    batch_size: Any


@runtime_checkable
class FillsBuffer(Protocol):
    """A collector of TorchRL with a replay buffer of its own, into which it may write."""

    def getattr_rb(self, attr: str) -> Any:
        """Return an attribute of that buffer, wherever it lies."""
        ...


@runtime_checkable
class FillsBufferInBackground(FillsBuffer, Protocol):
    """A collector of TorchRL that can write into its replay buffer while the caller does something else."""

    def start(self) -> object:
        """Begin to."""
        ...


@runtime_checkable
class SeedableCollector(Protocol):
    """A collector of TorchRL whose envs can be seeded."""

    def set_seed(self, seed: int, static_seed: bool = False) -> Any:
        """Seed them, and return the seed for what comes after them."""
        ...


@runtime_checkable
class ShutsDown(Protocol):
    """A collector of TorchRL, or another owner of processes."""

    def shutdown(self) -> object:
        """End everything that it started."""
        ...
