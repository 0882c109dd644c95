"""A progress bar with return, episode length, learning rate and frames per second."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, Field

from rlcore.hooks.specs import hookimpl
from rlcore.process.streams import lenient
from rlcore.types.context import Context
from rlcore.types.progress import ENDLESS

if TYPE_CHECKING:
    from rlcore.types.trainer import Trainer

# metric to (label, format)
SHOWN: Final = {
    "episode/return": ("return", "{:.1f}"),
    "episode/length": ("length", "{:.0f}"),
    "evaluation/return": ("evaluation", "{:.1f}"),
    "train/lr": ("lr", "{:.2e}"),
    "time/frames_per_second": ("frames/s", "{:,.0f}"),
    "time/updates_per_second": ("updates/s", "{:,.0f}"),
}

_BAR: Final = "{desc}: {percentage:3.0f}%|{bar:20}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}]{postfix}"
_COUNT: Final = "{desc}: {n_fmt} [{elapsed}]{postfix}"


class ProgressBar:
    """Shows how far the run is. Writes to the terminal only; changes nothing.

    Attributes:
        ranks: "first"; there is one terminal.
    """

    ranks: Final = "first"

    class Config(BaseModel, extra="forbid"):
        """The keys of the section."""

        always: bool = Field(
            default=True, description="also where standard error is no terminal, as in the log of a cluster"
        )

    def __init__(self, config: Config, context: Context) -> None:
        self._bar: Any = None
        self._always = config.always
        self._shown_at = -1

    @hookimpl
    def setup(self, trainer: Trainer) -> None:
        """Open the bar; a run without an end has only a count."""
        from tqdm import tqdm

        endless = trainer.stop_at == ENDLESS
        self._bar = tqdm(
            total=None if endless else trainer.stop_at,
            initial=trainer.progress.now,
            unit=trainer.progress.unit,
            desc=trainer.run_info.name,
            bar_format=_COUNT if endless else _BAR,
            dynamic_ncols=True,
            file=lenient(sys.stderr),
            disable=False if self._always else None,  # None: where it is no terminal
        )

    @hookimpl
    def post_steps_log(self, trainer: Trainer) -> None:
        """Move the bar and show the metrics that were written last."""
        if self._bar.disable:
            return
        if trainer.metrics.written_at != self._shown_at:
            self._show(trainer)
        if self._bar.total is not None:
            self._bar.total = max(self._bar.total, trainer.progress.now)  # the last batch may go beyond the end
        self._bar.update(trainer.progress.now - self._bar.n)

    def _show(self, trainer: Trainer) -> None:
        """Put the metrics beside the bar: those of the latest row, the same until there is another."""
        self._shown_at, latest = trainer.metrics.written_at, trainer.metrics.latest
        shown = [f"{label} {form.format(latest[key])}" for key, (label, form) in SHOWN.items() if key in latest]
        shown += [f"{key} {latest[key]:.4g}" for key in sorted(trainer.metrics.on_bar) if key in latest]
        self._bar.set_postfix_str(", ".join(shown), refresh=False)

    @hookimpl
    def shutdown(self, trainer: Trainer) -> None:
        """Show the last row, and close the bar."""
        if self._bar is not None:
            self._show(trainer)
            self._bar.close()
