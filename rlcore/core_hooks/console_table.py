"""A table of the latest metrics on the terminal, as often as metrics are written."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, Field

from rlcore.hooks.specs import hookimpl
from rlcore.loggers.statistics import STATISTICS
from rlcore.process.streams import lenient
from rlcore.types.context import Context
from rlcore.types.progress import ENDLESS

if TYPE_CHECKING:
    from rlcore.types.trainer import Trainer


class ConsoleTable:
    """Prints a line per metric to the standard error: its mean, and with several values their spread and range.

    Attributes:
        observer: True; it changes nothing.
        ranks: "first"; there is one terminal.
    """

    observer: Final = True
    ranks: Final = "first"

    class Config(BaseModel, extra="forbid"):
        """The keys of the config section."""

        keys: list[str] = Field(
            default_factory=list, description="names of metrics, or their beginnings such as `train/`; none: all"
        )

    def __init__(self, config: Config, context: Context) -> None:
        self._keys = tuple(config.keys)
        self._shown_at = -1

    @hookimpl
    def setup(self, trainer: Trainer) -> None:
        """Begin behind what was written before a resume."""
        self._shown_at = trainer.metrics.written_at

    @hookimpl
    def post_steps_log(self, trainer: Trainer) -> None:
        """Show the metrics that were written since."""
        self._show(trainer)

    @hookimpl
    def shutdown(self, trainer: Trainer) -> None:
        """Show the last ones."""
        self._show(trainer)

    def _show(self, trainer: Trainer) -> None:
        metrics, progress = trainer.metrics, trainer.progress
        if metrics.written_at == self._shown_at:
            return
        self._shown_at = metrics.written_at
        from tqdm import tqdm

        latest = {key: value for key, value in metrics.latest.items() if not self._keys or key.startswith(self._keys)}
        end = "" if progress.total == ENDLESS else f" of {progress.total:,}"
        title = f"{trainer.run_info.name}: {progress.unit} {metrics.written_at:,}{end}"
        tqdm.write(
            "\n".join([title, *table(latest)]), file=lenient(sys.stderr)
        )  # above a progress bar, where there is one


def table(row: Mapping[str, float]) -> Iterator[str]:
    """Yield a line for each metric of a row, in order of their names."""
    names = sorted(key for key in row if not _is_statistic(key, row))
    width = max(map(len, names), default=0)
    for name in names:
        spread = ""
        if f"{name}/std" in row:
            deviation, least, most, count = (row[f"{name}/{statistic}"] for statistic in STATISTICS)
            spread = f"  +- {deviation:.4g}  ({least:.6g} to {most:.6g}, {count:.0f} values)"
        yield f"  {name:<{width}}  {row[name]:>12.6g}{spread}"


def _is_statistic(key: str, row: Mapping[str, float]) -> bool:
    name, _, last = key.rpartition("/")
    return last in STATISTICS and name in row
