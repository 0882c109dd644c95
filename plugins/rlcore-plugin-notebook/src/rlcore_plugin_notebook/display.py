"""The hook that shows a run below the cell that trains it: a bar, figures, and curves that grow."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, Field
from rlcore_plugin_reports import read_metrics

from rlcore import Context, hookimpl
from rlcore.errors import RlcoreError
from rlcore.types import ENDLESS
from rlcore_plugin_notebook import html
from rlcore_plugin_notebook.kernel import Output, in_kernel, replace, show

if TYPE_CHECKING:
    from rlcore.types import EvaluationResult, Trainer

_EVALUATION: Final = "evaluation/return"
# metric to (label, format)
_FIGURES: Final = {
    "episode/return": ("return", "{:,.1f}"),
    _EVALUATION: ("evaluation", "{:,.1f}"),
    "time/frames_per_second": ("frames/s", "{:,.0f}"),
    "time/updates_per_second": ("updates/s", "{:,.0f}"),
}
# of the time of training at most, that pictures may take
_SHARE: Final = 0.01


class NotebookDisplay:
    """Shows how far the run is. Shows nothing outside of a notebook; changes nothing.

    Attributes:
        ranks: "first"; there is one notebook.
        observer: True; it changes nothing.
    """

    ranks: Final = "first"
    observer: Final = True

    class Config(BaseModel, extra="forbid"):
        """The keys of the section."""

        every: float = Field(
            default=1.0, gt=0, allow_inf_nan=False, description="seconds between two pictures, at least"
        )

    def __init__(self, config: Config, context: Context | None = None) -> None:
        self._every = config.every
        self._handle: Any = None
        self._parts: list[str] = []
        self._text = ""
        self._curves: dict[str, dict[int, float]] = {}
        self._row_at = -1
        self._due = 0.0
        self._begun = (0.0, 0)  # seconds, and the place on the clock

    @hookimpl
    def setup(self, trainer: Trainer) -> None:
        """Show the beginning, of a resumed run with the curves that it has."""
        if not in_kernel():
            return
        if trainer.progress.now and trainer.run_info.folder is not None:
            self._curves = _recorded(trainer)
        self._begun = time.monotonic(), trainer.progress.now
        self._draw(trainer)
        self._handle = show(self._output())

    @hookimpl
    def evaluation(self, result: EvaluationResult, trainer: Trainer) -> None:
        """Take an evaluation into the curves."""
        if self._handle is not None:
            self._curves.setdefault(_EVALUATION, {})[trainer.progress.now] = result.mean_return

    @hookimpl
    def post_steps_log(self, trainer: Trainer) -> None:
        """Take a new row of metrics into the curves, and show them when that is due."""
        if self._handle is None:
            return
        self._take_row(trainer)
        began = time.monotonic()
        if began >= self._due:
            self._draw(trainer)
            replace(self._handle, self._output())
            now = time.monotonic()
            self._due = now + max(self._every, (now - began) / _SHARE)

    @hookimpl
    def on_exception(self, error: BaseException, trainer: Trainer) -> None:
        """Show that the run failed, or was interrupted twice; the notebook shows the error itself."""
        if self._handle is not None:
            interrupted = isinstance(error, KeyboardInterrupt)
            self._draw(trainer, "stopped at once" if interrupted else f"failed: {type(error).__name__}")
            replace(self._handle, self._output())
            self._handle = None

    @hookimpl
    def shutdown(self, trainer: Trainer) -> None:
        """Show the end."""
        if self._handle is None:
            return
        self._take_row(trainer)
        ended = trainer.progress.now >= trainer.progress.total
        self._draw(trainer, "done" if ended else f"stopped: {trainer.stop_reason or 'before its end'}")
        replace(self._handle, self._output())

    def say(self, text: str) -> None:
        """Add a line to what is shown."""
        if self._handle is not None:
            self._parts.append(html.line(text))
            self._text += f"\n{text}"
            replace(self._handle, self._output())

    def _take_row(self, trainer: Trainer) -> None:
        metrics = trainer.metrics
        if metrics.written_at == self._row_at:
            return
        self._row_at = metrics.written_at
        for key, value in metrics.latest.items():
            if html.is_charted(key) and key != _EVALUATION:  # a row repeats the latest, which `evaluation` has taken
                self._curves.setdefault(key, {})[self._row_at] = value

    def _draw(self, trainer: Trainer, end: str = "") -> None:
        """Draw what `_output` returns; `end` says how the run ended."""
        progress, latest = trainer.progress, trainer.metrics.latest
        endless = trainer.stop_at == ENDLESS
        of = "" if endless else f" of {trainer.stop_at:,}"
        place = f"{progress.now:,}{of} {progress.clock}"
        figures = [f"{label} {form.format(latest[key])}" for key, (label, form) in _FIGURES.items() if key in latest]
        if end:
            figures.append(end)
        elif not endless and progress.now > self._begun[1]:
            figures.append(f"{self._left(progress.now, trainer.stop_at)} left")
        text = " · ".join(figures)
        self._text = f"{trainer.run_info.name}: {place}" + (f" · {text}" if text else "")
        curves = {key: (list(curve), list(curve.values())) for key, curve in self._curves.items()}
        self._parts = [
            html.line(place, bold=trainer.run_info.name),
            "" if endless else html.bar(progress.now / trainer.stop_at),
            html.line(text),
            html.chart(curves, progress.clock),
        ]

    def _left(self, now: int, end: int) -> timedelta:
        """Return how long the rest takes at the speed so far; at most some thirty years."""
        speed = (now - self._begun[1]) / max(time.monotonic() - self._begun[0], 1e-9)
        return timedelta(seconds=round(min(max(end - now, 0) / speed, 1e9)))

    def _output(self) -> Output:
        return {"text/html": html.framed(self._parts), "text/plain": self._text}


def _recorded(trainer: Trainer) -> dict[str, dict[int, float]]:
    """Return the curves of a resumed run up to its checkpoint; none where it wrote no metrics."""
    assert trainer.run_info.folder is not None
    try:
        recorded = read_metrics(trainer.run_info.folder)
    except RlcoreError:
        return {}
    return {
        key: {place: value for place, value in curve.items() if place <= trainer.progress.now}
        for key, curve in recorded.items()
        if html.is_charted(key)
    }


def notebook_display() -> NotebookDisplay | None:
    """Return what shows a run in this notebook; None where this process is no kernel of one."""
    return NotebookDisplay(NotebookDisplay.Config()) if in_kernel() else None
