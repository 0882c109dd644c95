"""Metrics: values are kept where they are until they are due, then reduced and handed to the loggers' threads.

The loggers that write them are from plugins.
"""

from __future__ import annotations

import itertools
import logging
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from rlcore.loggers import values as log_values
from rlcore.loggers.merging import Figures, merged
from rlcore.loggers.names import Names
from rlcore.loggers.writer import LogWriter, close_all, drain_all
from rlcore.types import Alone, Group, Logger
from rlcore.types.hook_parts import WALL_CLOCK, HookMetrics
from rlcore.types.progress import Every, Progress

log = logging.getLogger(__name__)

STATISTICS: Final = ("std", "min", "max", "count")
MANY_NAMES: Final = 10_000
MOST_NAMES: Final = 100_000
_FOLD: Final = 4096


@dataclass(frozen=True)
class Last:
    """A value of which only the last counts, such as a count or a learning rate; it is never averaged.

    Of several ranks that train together, that of the first one counts.
    """

    value: Any


@dataclass(frozen=True)
class Sum(Last):
    """A value of which only the last counts, and to which each rank adds its own, such as a count of frames."""


@dataclass
class _Reduced:
    """Statistics of the values of one key that were folded already."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    least: float = math.inf
    most: float = -math.inf

    def add(self, values: np.ndarray[Any, np.dtype[np.float64]]) -> None:
        """Take values in; the squares are of deviations from the mean (Chan et al., 1983), which do not cancel."""
        if not values.size:
            return
        mean = float(values.mean())
        squares = float(np.square(values - mean).sum())
        self.merge(_Reduced(values.size, mean, squares, float(values.min()), float(values.max())))

    def merge(self, other: _Reduced) -> None:
        """Take in the statistics of at least one other value."""
        total, shift = self.count + other.count, other.mean - self.mean
        self.squares += other.squares + shift * shift * self.count * other.count / total
        self.mean += shift * other.count / total
        self.count = total
        self.least = float(np.minimum(self.least, other.least))
        self.most = float(np.maximum(self.most, other.most))

    def row(self, key: str) -> dict[str, float]:
        """Return the mean under `key`, and with several values the other statistics under `key/…`."""
        if self.count == 1:
            return {key: self.mean}
        figures = (math.sqrt(self.squares / self.count), self.least, self.most, float(self.count))
        return {key: self.mean, **{f"{key}/{name}": value for name, value in zip(STATISTICS, figures, strict=True)}}


class Metrics:
    """Accumulates scalars by key and writes their statistics at intervals.

    Args:
        every: the interval of writing.
        writers: where rows go.
        group: the ranks that train together; each adds what it has, and writes at the same places as the others. The
            first one writes the statistics over all of them.

    Attributes:
        latest: the last written row, by key.
        written_at: where the run was at the last write, on its clock, over all resumes.
        observer: True; metrics watch a run and do not change it.
        on_bar: keys that asked to be shown on the progress bar.
        not_finite: how many written numbers were NaN or infinite.
        left_out: how many numbers were not written since there were more than 100,000 names.

    A key's mean is written under its own name; when several values came in, `std`, `min`, `max` and `count` under
    `key/std` and so on. A tensor of several elements counts as that many values. A key without a value is left out.
    """

    observer: Final = True

    def __init__(self, every: Every, writers: Iterable[LogWriter] = (), group: Group | None = None) -> None:
        self.every = every
        self.writers = list(writers)
        self._group: Group = group or Alone()
        self.latest: dict[str, float] = {}
        self.written_at = 0
        self.on_bar: set[str] = set()
        self.not_finite = 0
        self.left_out = 0
        self._many = False
        self._values: dict[str, list[Any]] = {}
        self._last: dict[str, Any] = {}
        self._sums: set[str] = set()
        self._newest: dict[str, Any] = {}
        self._reduced: dict[str, _Reduced] = {}
        self._refused: set[str] = set()
        self._names = Names()

    def add(self, values: Mapping[str, Any], prefix: str = "") -> None:
        """Take values in; tensors stay where they are. A name of a hook that the core uses gets the hook's name."""
        hooks = values.hooks if type(values) is HookMetrics else None
        given = self._names.given
        for key, value in values.items():
            if key == "log_pbar":
                self.on_bar |= {
                    prefix + shown if hooks is None else self._names.of_hook(shown, hooks[shown]) for shown in value
                }
                continue
            key = prefix + key
            if hooks is not None:
                key = self._names.of_hook(key, hooks[key])
            elif given and key in given:
                self._make_room(key)
            if isinstance(value, Last):
                self._last[key] = self._newest[key] = value.value
                if hooks is None:
                    self._names.core.add(key)
                if isinstance(value, Sum):
                    self._sums.add(key)
                continue
            held = self._values.get(key)
            if held is None:
                held = self._values[key] = []
                if hooks is None:
                    self._names.core.add(key)
            held.append(value)
            self._newest[key] = value
            if len(held) >= _FOLD:
                self._fold(key)

    def extend(self, key: str, values: Iterable[float]) -> None:
        """Take several values of one key in."""
        values = list(values)
        if not values:
            return  # no entry, so that the order of the keys outlives a checkpoint
        if key in self._names.given:
            self._make_room(key)
        self._names.core.add(key)
        held = self._values.setdefault(key, [])
        held.extend(values)
        self._newest[key] = values[-1]
        if len(held) >= _FOLD:
            self._fold(key)

    def newest(self, key: str) -> float | None:
        """Return the latest value that came in under `key` in the whole run; None when there is none.

        Of a tensor of several elements it is their mean. Statistics that exist only once written, such as `key/min`,
        are those of the last write.
        """
        if key not in self._newest:
            return self.latest.get(key)
        value = self._newest[key]
        if not isinstance(value, float):
            array = self._to_array(key, [value])
            value = self._newest[key] = float(array.mean()) if array.size else math.nan
        return value

    def write(self, progress: Progress) -> None:
        """Reduce everything that came in since the last write, and write it at `progress.now`."""
        _fetch(self._values, self._last)
        for key in list(self._values):
            self._fold(key)
        if self._group.size > 1:
            self._merge()
        row: dict[str, float] = {}
        for key, reduced in self._reduced.items():
            if reduced.count:
                row.update(reduced.row(key))
        row.update({key: float(value) for key, value in self._last.items()})
        self._values.clear()
        self._reduced.clear()
        self._last.clear()
        self.written_at = progress.now
        if not row:
            return
        self._bound(row)
        self.latest.update(row)
        for writer in self.writers:
            writer.write(row, progress.now)

    def log_video(self, name: str, video: Any, step: int, fps: int = 30) -> None:
        """Hand videos to every logger.

        Args:
            name: metric name, such as `evaluation/video`.
            video: tensor or array `[N, T, C, H, W]`, uint8, with C 1 or 3; it is copied.
            step: how far the run is, `progress.now`.
            fps: frames of the video per second.

        Raises:
            RlcoreError: another shape or type.
        """
        if self.writers:
            checked = log_values.video(video).copy()
            self._show(lambda logger: logger.log_video(name, checked, step, fps), checked.nbytes)

    def log_image(self, name: str, image: Any, step: int) -> None:
        """Hand an image `[C, H, W]`, uint8, with C 1 or 3, to every logger; it is copied.

        Raises:
            RlcoreError: another shape or type.
        """
        if self.writers:
            checked = log_values.image(image).copy()
            self._show(lambda logger: logger.log_image(name, checked, step), checked.nbytes)

    def log_histogram(self, name: str, data: Any, step: int) -> None:
        """Hand numbers of any shape to every logger, to show how they are distributed; they are copied."""
        if self.writers:
            array = log_values.to_numpy(data).copy()
            self._show(lambda logger: logger.log_histogram(name, array, step), array.nbytes)

    def log_text(self, name: str, text: str, step: int) -> None:
        """Hand a text to every logger."""
        self._show(lambda logger: logger.log_text(name, text, step), len(text))

    def drain(self) -> None:
        """Return when every writer has stored what it was given."""
        drain_all(self.writers)

    def state_dict(self) -> dict[str, Any]:
        """Return what came in since the last write, so that a stop between two writes loses nothing; and the latest."""
        _fetch(self._values, self._last, self._newest)
        pending = {key: (self._to_array(key, held), len(held)) for key, held in self._values.items() if held}
        reduced = {key: asdict(value) for key, value in self._reduced.items()}
        last = {key: float(value) for key, value in self._last.items()}
        newest = {key: self.newest(key) for key in self._newest if not key.startswith(WALL_CLOCK)}
        latest = {key: value for key, value in self.latest.items() if not key.startswith(WALL_CLOCK)}
        return {
            "pending": pending,
            "reduced": reduced,
            "last": last,
            "sums": sorted(self._sums),
            "newest": newest,
            "latest": latest,
            "written_at": self.written_at,
            **({"apart": sorted(self._names.apart)} if self._names.apart else {}),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what had come in."""
        self._values = {  # of the same length as before, so that folding happens at the same places
            key: [np.array(values), *[np.zeros(0)] * (entries - 1)]
            for key, (values, entries) in state["pending"].items()
        }
        self._reduced = {key: _Reduced(**value) for key, value in state["reduced"].items()}
        self._last = dict(state["last"])
        self._sums = set(state.get("sums", ()))  # runs of one process did not write them at first
        self._newest = dict(state["newest"])
        self.latest = dict(state["latest"])
        self.written_at = state["written_at"]
        self._names.apart = set(state.get("apart", ()))

    def close(self) -> None:
        """Drain and close the writers."""
        close_all(self.writers)

    def _make_room(self, key: str) -> None:
        """Keep what a hook gave under its name, since the core gives the same metric."""
        own = self._names.of_core(key, self._values, self._reduced, self._last, self._newest)
        self.on_bar = {own if shown == key else shown for shown in self.on_bar}

    def _merge(self) -> None:
        """Let the first rank have the statistics of all of them, in their order, and the others none."""
        statistics = {key: astuple(figures) for key, figures in self._reduced.items() if figures.count}
        last = {key: float(value) for key, value in self._last.items()}
        figures = merged(Figures(statistics, last, [key for key in last if key in self._sums]), self._group)
        self._reduced = {key: _Reduced(int(n), *own) for key, (n, *own) in figures.statistics.items()}
        self._last = dict(figures.last)

    def _show(self, call: Callable[[Logger], object], size: int) -> None:
        for writer in self.writers:
            writer.show(call, size)

    def _fold(self, key: str) -> None:
        held = self._values.get(key)
        if not held:
            return
        with np.errstate(invalid="ignore"):  # infinities and NaN are written as they come out
            self._reduced.setdefault(key, _Reduced()).add(self._to_array(key, held))
        held.clear()

    def _to_array(self, key: str, held: list[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return all values in the order in which they came in; a sum depends on it in its last bits."""
        arrays = []
        alike = len(set(map(type, held))) == 1  # as nearly always, and then nothing need be grouped
        groups = [(_kind(held[0]), held)] if alike else itertools.groupby(held, _kind)
        for kind, values in groups:
            if kind == "tensor":
                arrays.append(_flat(list(values)).to("cpu", torch.float64).numpy())
            elif kind == "number":
                arrays.append(np.asarray([float(value) for value in values]))
            elif kind == "array":
                arrays += [value.astype(np.float64).ravel() for value in values]
            else:
                self._refuse(key, held)
        return np.concatenate([np.zeros(0), *arrays])

    def _bound(self, row: dict[str, float]) -> None:
        """Count what is not finite, and leave out names beyond the most that are kept, so that memory stays bounded."""
        self.not_finite += sum(not math.isfinite(value) for value in row.values())
        if len(self.latest) + len(row) <= MANY_NAMES:
            return
        fresh = [key for key in row if key not in self.latest]
        if fresh and not self._many:
            self._many = True
            log.warning("there are more than %d metric names; is there a step or a time in them?", MANY_NAMES)
        for key in fresh[max(0, MOST_NAMES - len(self.latest)) :]:
            del row[key]
            self.left_out += 1

    def _refuse(self, key: str, held: list[Any]) -> None:
        if key not in self._refused:
            self._refused.add(key)
            kinds = {
                type(value).__name__ for value in held if not isinstance(value, numbers.Real | Tensor | np.ndarray)
            }
            log.warning("metric %r has values that are not numbers (%s); they are left out", key, ", ".join(kinds))


class Averages:
    """Running means of the values of an iteration, by key; tensors stay where they are."""

    def __init__(self) -> None:
        self._sums: dict[str, Any] = {}
        self._counts: dict[str, int] = {}

    def add(self, values: Mapping[str, Any]) -> None:
        """Take the numbers of one update in; a tensor of several elements is left out."""
        for key, value in values.items():
            if isinstance(value, numbers.Real) or (isinstance(value, Tensor) and value.numel() == 1):
                self._sums[key] = self._sums[key] + value if key in self._sums else value
                self._counts[key] = self._counts.get(key, 0) + 1

    def means(self) -> dict[str, Any]:
        """Return the mean of each key over the updates that had it."""
        return {key: total / self._counts[key] for key, total in self._sums.items()}


def _fetch(values: Mapping[str, list[Any]], *single: dict[str, Any]) -> None:
    """Put numbers on the CPU in the place of those on a device, in one copy: each would wait for the device."""
    ends = [held for held in values.values() if held and (_is_away(held[0]) or _is_away(held[-1]))]
    away: list[tuple[Any, Any]] = [(held, i) for held in ends for i, value in enumerate(held) if _is_away(value)]
    away += [(holder, key) for holder in single for key, value in holder.items() if _is_away(value)]
    if not away:
        return
    tensors = [holder[place].detach() for holder, place in away]
    kind = torch.float32 if tensors[0].device.type == "mps" else torch.float64  # which Apple's has not
    row = torch.cat([tensor.reshape(-1).to(kind) for tensor in tensors]).cpu()
    pieces = torch.split(row, [tensor.numel() for tensor in tensors])
    for (holder, place), tensor, piece in zip(away, tensors, pieces, strict=True):
        holder[place] = piece.reshape(tensor.shape)


def _is_away(value: Any) -> bool:
    return isinstance(value, Tensor) and value.device.type != "cpu"


def _flat(tensors: list[Tensor]) -> Tensor:
    """Return all elements in one dimension; tensors of one shape, as nearly always, are stacked at once."""
    if all(tensor.ndim == 0 for tensor in tensors):
        return torch.stack(tensors).detach()
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, np.ndarray):
        return "array"
    return "number" if isinstance(value, numbers.Real | np.bool_) else "refused"
