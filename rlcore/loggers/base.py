"""The base of loggers, with a default for every method beyond metrics."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlcore.types import Logger as LoggerPart

if TYPE_CHECKING:
    from rlcore.loggers.values import Bins
    from rlcore.types.records import Array

log = logging.getLogger(__name__)


class LoggerBase(LoggerPart):
    """Base of loggers; a subclass defines `log_metrics` or `log_scalar`, and methods for other media that it shows.

    Other media are left out, with one warning for each kind. `rlcore.loggers.Logger` is this class.

    Args:
        exp_name: name of the experiment.
        log_dir: a folder, or the address of a server.

    Attributes:
        experiment: the object of the library that writes, if there is one.
    """

    def __init__(self, exp_name: str = "", log_dir: str = "") -> None:
        self.exp_name = exp_name
        self.log_dir = log_dir
        self._steps: Counter[str] = Counter()
        self._unshown_kinds: set[str] = set()
        self._experiment: Any = self._create_experiment()

    def _create_experiment(self) -> Any:
        """Return the object of the library that writes; the constructor calls this once."""
        return None

    @property
    def experiment(self) -> Any:
        """The object of the library that writes; the logger itself where there is none."""
        return self if self._experiment is None else self._experiment

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> dict[str, float] | None:
        """Write the scalars of one step, and perhaps return them as written.

        Args:
            metrics: numbers by name, also in tables inside, or a TensorDict: see `rlcore.loggers.values.row`.
            step: environment frames; default: the number of earlier calls.
        """
        if type(self).log_scalar is LoggerBase.log_scalar:
            raise NotImplementedError(f"{type(self).__name__} must define log_metrics(metrics, step) or log_scalar")
        from rlcore.loggers import values as log_values  # imports NumPy, which listing loggers does without

        row = log_values.row(metrics)
        for name, value in row.items():
            self.log_scalar(name, value, step)
        return row

    def log_scalar(self, name: str, value: Any, step: int | None = None) -> None:
        """Write one scalar."""
        self.log_metrics({name: value}, self.step_of(name, step))

    def log_histogram(self, name: str, data: Array, step: int | None = None, bins: Bins = None) -> None:
        """Leave the histogram out; `bins` are those of `rlcore.loggers.values.histogram`."""
        self._cannot_show("histograms")

    def log_image(self, name: str, image: Array, step: int | None = None) -> None:
        """Leave the image out."""
        self._cannot_show("images")

    def log_video(self, name: str, video: Array, step: int | None = None, fps: int = 30) -> None:
        """Leave the video out."""
        self._cannot_show("videos")

    def log_text(self, name: str, text: str, step: int | None = None) -> None:
        """Leave the text out."""
        self._cannot_show("texts")

    def log_str(self, name: str, value: str, step: int | None = None) -> None:
        """Write a text, by another name."""
        self.log_text(name, value, step)

    def shutdown(self) -> None:
        """Close, by another name."""
        self.close()

    def step_of(self, name: str, step: int | None) -> int:
        """Return a step as an int, or without one the number of earlier calls for this name."""
        if step is None:
            step = self._steps[name]
            self._steps[name] += 1
        return int(step)

    def _differs(self, what: str) -> None:
        """Log and count a difference from the checkpoint; the run goes on."""
        self.differences += 1
        log.error("%s; the run goes on", what)

    def _cannot_show(self, kind: str) -> None:
        if kind not in self._unshown_kinds:
            self._unshown_kinds.add(kind)
            log.warning("%s cannot show %s; they are left out there", type(self).__name__, kind)


Logger = LoggerBase  # as `rlcore.loggers` calls it
