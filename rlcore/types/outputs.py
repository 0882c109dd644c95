"""The interfaces of what a run writes: loggers, checkpoint back ends, and whatever has a state."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from torch import Tensor

    from rlcore.types.records import Array, State


class Logger(Protocol):
    """Writes metrics and media somewhere. Called from a thread of its own, one call at a time.

    `name` is a metric name such as `train/loss_critic`, `step` the number of environment frames. A logger that can show
    metrics alone derives from `rlcore.loggers.base.LoggerBase`, which has all the other methods.

    A logger may also have `files()`, what is synced to disk with each checkpoint; `begin_anew()`, called when the run
    begins again without a checkpoint; `differences`, how much `load_state_dict` found to be other than the state says;
    and `unsent`, how many records wait on disk for a server.
    """

    def log_scalar(self, name: str, value: float, step: int) -> None:
        """Write one scalar."""
        ...

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> object:
        """Write scalars of one step together."""
        ...

    def log_histogram(self, name: str, data: Array, step: int) -> None:
        """Write the distribution of numbers; `data` has any shape and may hold NaN and infinities."""
        ...

    def log_image(self, name: str, image: Array, step: int) -> None:
        """Write an image `[C, H, W]`, uint8, with C 1 (grey) or 3 (red, green, blue)."""
        ...

    def log_video(self, name: str, video: Array, step: int, fps: int = 30) -> None:
        """Write videos `[N, T, C, H, W]`, uint8, with C 1 or 3; the N are shown side by side."""
        ...

    def log_text(self, name: str, text: str, step: int) -> None:
        """Write a text."""
        ...

    def log_hparams(self, config: Mapping[str, Any]) -> None:
        """Write the resolved config of the run, once, before the first metrics."""
        ...

    def start(self, wait: bool = False) -> None:
        """Open the back end, after the state is set and before the first row.

        Args:
            wait: return only when it is open; else it may open later. Set when the section says `required = true`.

        Raises:
            Exception: it cannot be opened. This ends a run only if `wait` is true.
        """
        ...

    def flush(self) -> None:
        """Return when everything handed over is safe on this machine's disk; never wait for a server."""
        ...

    def close(self) -> None:
        """Flush and release. May be called twice."""
        ...

    def state_dict(self) -> State:
        """Return the position in what was written."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a position: what was written after it disappears, or is not written a second time."""
        ...

    def branch(self) -> None:
        """Called after `load_state_dict` when training goes on otherwise than what was written after that position.

        A back end that cannot remove that goes on in a run of its own, linked to the one before.
        """
        ...


class Checkpointer(Protocol):
    """Writes and reads named tensors; the commit protocol and the structure around them are the core's."""

    def save(self, folder: Path, tensors: Mapping[str, Tensor]) -> None:
        """Write `tensors` into files inside `folder`, which exists and is empty; the core syncs and hashes them.

        Raises:
            OSError: the device is full, read-only or failing.
        """
        ...

    def load(self, folder: Path) -> Mapping[str, Tensor]:
        """Return the tensors of `folder`, mapped or copied, without running code from the files."""
        ...


@runtime_checkable
class InPlaceCheckpointer(Checkpointer, Protocol):
    """A checkpointer that also restores into existing tensors, without memory for a second copy."""

    def load_into(self, folder: Path, tensors: Mapping[str, Tensor]) -> None:
        """Fill `tensors`, contiguous and on the CPU, with what `folder` holds under their names.

        Raises:
            StorageError: a name is missing, or what is saved has another type or shape.
        """
        ...


@runtime_checkable
class Stateful(Protocol):
    """Whatever has state that a checkpoint must carry."""

    def state_dict(self) -> Mapping[str, Any]:
        """Return tensors, arrays, numbers, strings, and lists and dicts of them."""
        ...

    def load_state_dict(self, state: Any) -> Any:
        """Take back what `state_dict` returned."""
        ...
