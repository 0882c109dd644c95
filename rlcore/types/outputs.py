"""The classes of what writes for a run, loggers and checkpoint back ends, and the interface of what has a state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from rlcore.types.part import Part

if TYPE_CHECKING:
    from torch import Tensor

    from rlcore.types.records import Array, State


class Logger(Part, ABC):
    """Writes metrics and media somewhere.

    It is built and called in a thread of its own, one call at a time, in the order of the run. The training loop waits
    for it in `flush`, `state_dict` and `close` only, and never longer than some seconds. An error is counted and
    logged; after three the logger is switched off, and the run goes on. A full disk (`OSError`) does not count: the
    logger is tried again.

    `name` is a metric name such as `train/loss_critic`, `step` the number of environment frames. Arrays are NumPy's, on
    the CPU, and the logger's own. A logger best derives from `rlcore.loggers.Logger`, which derives from this class: it
    needs `log_metrics` or `log_scalar` there, and what it cannot show is left out, and said once.

    Attributes:
        differences: how much `load_state_dict` found to be other than the state says.
        unsent: how many records wait on this machine's disk for a server; None for a logger without a server.

    Called in `rlcore/loggers/writer.py`:

        self._hand_over(lambda: self.logger.log_metrics(row, step))
        ...
        self._hand_over(lambda: call(self.logger), size)
        ...
        self._hand_over(lambda: self.logger.log_hparams(config))
    """

    differences: int = 0
    unsent: int | None = None

    @abstractmethod
    def log_metrics(self, metrics: Mapping[str, float], step: int) -> object:
        """Write scalars of one step together; called at each write, with steps that grow.

        Args:
            metrics: numbers by name, NaN and infinities among them. The names may differ from row to row. Those that
                begin with `time/` come from the clock: a logger whose files are to be equal after a resume writes
                them apart.
            step: environment frames.
        """
        ...

    def log_scalar(self, name: str, value: float, step: int) -> None:
        """Write one scalar; it may be NaN or infinite."""
        self.log_metrics({name: value}, step)

    def log_histogram(self, name: str, data: Array, step: int) -> None:
        """Write the distribution of numbers; `data` has any shape and may hold NaN and infinities."""

    def log_image(self, name: str, image: Array, step: int) -> None:
        """Write an image `[C, H, W]`, uint8, with C 1 (grey) or 3 (red, green, blue)."""

    def log_video(self, name: str, video: Array, step: int, fps: int = 30) -> None:
        """Write videos `[N, T, C, H, W]`, uint8, with C 1 or 3; the N are shown side by side.

        Args:
            name: metric name.
            video: N videos of T frames.
            step: environment frames.
            fps: frames of the video per second.
        """

    def log_text(self, name: str, text: str, step: int) -> None:
        """Write a text."""

    def log_hparams(self, config: Mapping[str, Any]) -> None:
        """Write the resolved config of the run, nested; called once per process, before the first metrics."""

    def start(self, wait: bool = False) -> None:
        """Open what it writes to, after the state is set and before the first row.

        Args:
            wait: return only when it is open; else it may open later. Set when the section says `required = true`.

        Raises:
            Exception: it cannot be opened. This ends a run only if `wait` is true.
        """

    def flush(self) -> None:
        """Return when everything handed over is safe on this machine's disk; never wait for a server.

        Called before each checkpoint. After five seconds the logger is given up.
        """

    def close(self) -> None:
        """Flush and release. May be called twice, and without a row."""

    def state_dict(self) -> State:
        """Return the position in what was written; called at each checkpoint, after `flush`."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a position: what was written after it disappears, or is not written a second time.

        Called in a resume, before `start`.
        """

    def files(self) -> Sequence[Path]:
        """Return what is synced to disk with each checkpoint; called after `flush`."""
        return ()

    def begin_anew(self) -> None:
        """Remove what was written: the run starts over without a checkpoint."""

    def branch(self) -> None:
        """Called after `load_state_dict` when training goes on otherwise than what was written after that position.

        A logger that cannot remove that goes on in a run of its own, linked to the one before.
        """


class Checkpointer(Part, ABC):
    """Writes and reads named tensors; the commit protocol and the structure around them are the core's.

    It is built and called in the process that trains; `save` in a thread of its own with `[checkpoint] async`, one call
    at a time. It has no state: another instance, in another process, reads what this one wrote.

    Called in `rlcore/checkpoints/store.py`:

        self._backend.save(partial, snapshot.tensors)
        ...
        tensors = dict(self._backend.load(entry.path))
        ...
                self._backend.load_into(entry.path, {name: tensor})
    """

    @abstractmethod
    def save(self, folder: Path, tensors: Mapping[str, Tensor]) -> None:
        """Write tensors into files of a folder; the core syncs and hashes the files, and renames the folder.

        Args:
            folder: exists and is empty. Only plain files may be left in it, no folders and no links.
            tensors: on any device, of any dtype, shape and layout in memory; some may share memory, or be small views
                of large ones. They are the trainer's, or a copy with `async`: to be read only, and not kept.

        Raises:
            OSError: the device is full, read-only or failing. Any other error becomes a `StorageError` too.
        """
        ...

    @abstractmethod
    def load(self, folder: Path) -> Mapping[str, Tensor]:
        """Return the tensors of a folder without running code from its files.

        Args:
            folder: whose files have been verified against their checksums.

        Returns:
            The same names, dtypes, shapes and bits, on the CPU, mapped or copied: writing into a tensor changes neither
            the files nor another tensor.

        Raises:
            StorageError: the files do not fit together. The run then falls back to the checkpoint before.
        """
        ...

    def load_into(self, folder: Path, tensors: Mapping[str, Tensor]) -> None:
        """Fill tensors with what a folder holds under their names, without memory for a second copy.

        Called of a checkpointer that defines it, for the tensors that fit; the default makes a copy.

        Args:
            folder: whose files have been verified.
            tensors: contiguous and on the CPU; the trainer's own, written over in place. Those that are not named stay.

        Raises:
            StorageError: a name is missing, or what is saved has another type or shape.
        """
        loaded = self.load(folder)
        for name, tensor in tensors.items():
            tensor.copy_(loaded[name])


@runtime_checkable
class Stateful(Protocol):
    """Whatever has state that a checkpoint must carry: any component, most of all hooks.

    Called in the process that trains, between two iterations. A component without these two methods starts over in a
    resume. What is saved must be enough to go on as if there had been no stop.

    Called in `rlcore/training/carried.py`:

        with named(f"{name.replace('.', ' ')} in its state_dict", kind):
            states[name] = part.state_dict()
    """

    def state_dict(self) -> Mapping[str, Any]:
        """Return tensors, arrays, numbers, strings, and lists and dicts of them.

        Called at each checkpoint, and between iterations now and then, for the copy that is saved after an error: it
        has to be quick. Tensors may be the component's own; they are read, or copied, before the next step.
        """
        ...

    def load_state_dict(self, state: Any) -> Any:
        """Take back what `state_dict` returned, in a component that was built from the same config.

        Called once in a resume, before `setup`. Tensors may be mapped files: copy what is to be changed in place and
        is not small. The return value counts for nothing.

        Raises:
            Exception: the state does not fit; the resume ends as a `StorageError` that names the component.
        """
        ...
