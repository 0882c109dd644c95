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
from rlcore.loggers.statistics import Statistics, fetch, flat, kind_of
from rlcore.loggers.writer import LogWriter, close_all, drain_all
from rlcore.plugins.known import lend
from rlcore.types import Alone, Group, Logger
from rlcore.types.hook_parts import WALL_CLOCK, HookMetrics, under_name_of
from rlcore.types.progress import Every, Progress

log = logging.getLogger(__name__)

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


class _Names:
    """Knows who gives a metric.

    Attributes:
        core: names that the loop and its parts give.
        of_hooks: names that hooks give, with the name of the hook.
        apart: names that are given twice.
    """

    def __init__(self) -> None:
        self.core: set[str] = set()
        self.of_hooks: dict[str, str] = {}
        self.apart: set[str] = set()

    def of_hook(self, key: str, hook: str) -> str:
        """Return the name under which a metric of a hook is kept."""
        if key in self.core or key in self.apart or self.of_hooks.setdefault(key, hook) != hook:
            return self._part(key, hook)
        return key

    def of_core(self, key: str, *stores: dict[str, Any]) -> str:
        """Give a name of a hook to the core; return the name for what the hook gave, under which stores now have it."""
        renamed = self._part(key, self.of_hooks.pop(key))
        for store in stores:
            if key in store:
                store[renamed] = store.pop(key)
        return renamed

    def _part(self, key: str, hook: str) -> str:
        renamed = under_name_of(hook, key)
        if key not in self.apart:
            self.apart.add(key)
            log.warning(
                "metric %r of hook %r is given elsewhere too; that of the hook is kept as %r", key, hook, renamed
            )
        return renamed


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
        if self._group.size > 1:  # here, so that a missing plugin is told of before the first frame
            self._merged = lend("rlcore.training", "merged", "a row over several ranks")
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
        self._reduced: dict[str, Statistics] = {}
        self._refused: set[str] = set()
        self._names = _Names()

    def add(self, values: Mapping[str, Any], prefix: str = "") -> None:
        """Take values in; those of a device stay there. A name of a hook that the core uses gets the hook's name."""
        hooks = values.hooks if type(values) is HookMetrics else None
        of_hooks = self._names.of_hooks
        for key, value in values.items():
            if key == "log_pbar":
                self.on_bar |= {
                    prefix + shown if hooks is None else self._names.of_hook(shown, hooks[shown]) for shown in value
                }
                continue
            key = prefix + key
            if hooks is not None:
                key = self._names.of_hook(key, hooks[key])
            elif of_hooks and key in of_hooks:
                self._make_room(key)
            if isinstance(value, Tensor):
                value = _kept(value)
            elif isinstance(value, Last):
                self._last[key] = self._newest[key] = value.value
                if hooks is None:
                    self._names.core.add(key)
                if isinstance(value, Sum):
                    self._sums.add(key)
                continue
            waiting = self._values.get(key)
            if waiting is None:
                waiting = self._values[key] = []
                if hooks is None:
                    self._names.core.add(key)
            waiting.append(value)
            self._newest[key] = value
            if len(waiting) >= _FOLD:
                self._fold(key)

    def extend(self, key: str, values: Iterable[float]) -> None:
        """Take several values of one key in."""
        values = list(values)
        if not values:
            return  # no entry, so that the order of the keys outlives a checkpoint
        if key in self._names.of_hooks:
            self._make_room(key)
        self._names.core.add(key)
        waiting = self._values.setdefault(key, [])
        waiting.extend(values)
        self._newest[key] = values[-1]
        if len(waiting) >= _FOLD:
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
        fetch(self._values, self._last)
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
        fetch(self._values, self._last, self._newest)
        pending = {
            key: (self._to_array(key, waiting), len(waiting)) for key, waiting in self._values.items() if waiting
        }
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
        self._reduced = {key: Statistics(**value) for key, value in state["reduced"].items()}
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
        renamed = self._names.of_core(key, self._values, self._reduced, self._last, self._newest)
        self.on_bar = {renamed if shown == key else shown for shown in self.on_bar}

    def _merge(self) -> None:
        """Let the first rank have the statistics of all of them, in their order, and the others none."""
        statistics = {key: astuple(figures) for key, figures in self._reduced.items() if figures.count}
        last = {key: float(value) for key, value in self._last.items()}
        sums = [key for key in last if key in self._sums]
        statistics, self._last = self._merged(statistics, last, sums, self._group)
        self._reduced = {key: Statistics(int(count), *figures) for key, (count, *figures) in statistics.items()}

    def _show(self, call: Callable[[Logger], object], size: int) -> None:
        for writer in self.writers:
            writer.show(call, size)

    def _fold(self, key: str) -> None:
        waiting = self._values.get(key)
        if not waiting:
            return
        with np.errstate(invalid="ignore"):  # infinities and NaN are written as they come out
            self._reduced.setdefault(key, Statistics()).add(self._to_array(key, waiting))
        waiting.clear()

    def _to_array(self, key: str, waiting: list[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return all values in the order in which they came in; a sum depends on it in its last bits."""
        arrays = []
        alike = len(set(map(type, waiting))) == 1  # as nearly always, and then nothing need be grouped
        groups = [(kind_of(waiting[0]), waiting)] if alike else itertools.groupby(waiting, kind_of)
        for kind, values in groups:
            if kind == "tensor":
                arrays.append(flat(list(values)).to("cpu", torch.float64).numpy())
            elif kind == "number":
                arrays.append(np.asarray([float(value) for value in values]))
            elif kind == "array":
                arrays += [value.astype(np.float64).ravel() for value in values]
            else:
                self._refuse(key, waiting)
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

    def _refuse(self, key: str, values: list[Any]) -> None:
        if key not in self._refused:
            self._refused.add(key)
            kinds = {
                type(value).__name__ for value in values if not isinstance(value, numbers.Real | Tensor | np.ndarray)
            }
            log.warning("metric %r has values that are not numbers (%s); they are left out", key, ", ".join(kinds))


def _kept(tensor: Tensor) -> Any:
    """Return what is kept of a value until it is written: of a tensor on a device itself, which nobody waits for.

    A small tensor of the host would lie among the large ones of its update, and leave a place that is too small for
    those of the next update: the process would grow with each.
    """
    if not tensor.is_cpu:
        return tensor
    return tensor.item() if tensor.numel() == 1 else tensor.detach().double().numpy().copy()
