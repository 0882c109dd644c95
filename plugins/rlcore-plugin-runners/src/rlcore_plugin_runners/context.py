"""Where a run writes, and which of its snapshots stay: what `logger_context` says, without files of its own."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rlcore.errors import ConfigError

SNAPSHOT_MODES: Final = ("none", "last", "all", "gap")
_MANY: Final = 1_000_000_000
LOG_DIR: Final = Path("data/local")


@dataclass
class LogContext:
    """What the runners in a `with logger_context(...)` write, and where.

    Attributes:
        folder: of the run.
        params: for `params.json`.
        snapshot_mode: one of `SNAPSHOT_MODES`.
        snapshot_gap: iterations between two snapshots of the mode `gap`, at least those between two log points.
        summary_writer: whether TensorBoard gets the metrics too.
        run_id: of the run.
    """

    folder: Path
    params: Mapping[str, Any] = field(default_factory=dict)
    snapshot_mode: str = "none"
    snapshot_gap: int = 1
    summary_writer: bool = False
    run_id: int | str = 0

    def snapshot_name(self, itr: int) -> str | None:
        """Return the name of the snapshot of an iteration; None where the mode keeps none.

        Args:
            itr: iteration, from 0.
        """
        if self.snapshot_mode == "last":
            return "params.pkl"
        kept = self.snapshot_mode == "all" or (self.snapshot_mode == "gap" and (itr + 1) % self.snapshot_gap == 0)
        return f"itr_{itr}.pkl" if kept else None

    def checkpoint(self, log_interval_itrs: int, n_itr: int) -> dict[str, Any]:
        """Return the section [checkpoint].

        Args:
            log_interval_itrs: iterations between two log points.
            n_itr: iterations of the run.
        """
        kept = 1 if self.snapshot_mode in ("none", "last") else _MANY
        every = {"none": n_itr, "last": log_interval_itrs, "all": log_interval_itrs}.get(
            self.snapshot_mode, max(self.snapshot_gap, log_interval_itrs)
        )
        return {"every": {"iterations": every}, "keep_last": kept, "keep_best": False}


def get_log_dir(experiment_name: str | Path) -> Path:
    """Return a folder of the day and time for an experiment, below `data/local` of the working directory."""
    return LOG_DIR / time.strftime("%Y%m%d") / time.strftime("%H%M%S") / experiment_name


def _dated(place: Path) -> Path:
    """Return the folder of a run below the day and time, which no other run has: of one second, the second is `-2`."""
    dated = get_log_dir(place)
    stamp = dated.parents[len(place.parts) - 1]
    for number in itertools.count(1):
        own = stamp if number == 1 else stamp.with_name(f"{stamp.name}-{number}")
        with contextlib.suppress(FileExistsError):
            own.mkdir(parents=True)
            break
    return own / place


_current: ContextVar[LogContext | None] = ContextVar("rlpyt_log_context", default=None)


@contextlib.contextmanager
def logger_context(
    log_dir: str | Path,
    run_ID: int | str,  # noqa: N803, as in rlpyt
    name: str,
    log_params: Mapping[str, Any] | None = None,
    snapshot_mode: str = "none",
    override_prefix: bool = False,
    use_summary_writer: bool = False,
) -> Iterator[LogContext]:
    """Let the runner inside write into `data/local/DATE/TIME/LOG_DIR/run_ID`; without one it writes nothing.

    Args:
        log_dir: part of the folder's path; a folder in `data/local` already is the whole of it.
        run_ID: of the run; its folder is called `run_ID`.
        name: goes into `params.json`, as `run_ID` does.
        log_params: go there too.
        snapshot_mode: which checkpoints stay: `last` and `all` are about those of the log points, `gap` keeps all that
            are `set_snapshot_gap` apart; `none` saves the end of the run alone.
        override_prefix: put `run_ID` directly into `log_dir`, as a run that is to be resumed needs.
        use_summary_writer: write the metrics for TensorBoard too.

    Raises:
        ConfigError: another snapshot mode.
    """
    if snapshot_mode not in SNAPSHOT_MODES:
        raise ConfigError(f"snapshot_mode = {snapshot_mode!r}; it is one of {', '.join(SNAPSHOT_MODES)}")
    place = Path(log_dir) / f"run_{run_ID}"
    if not override_prefix and not place.absolute().is_relative_to(LOG_DIR.absolute()):
        place = _dated(place)
    params = {**(log_params or {}), "name": name, "run_ID": run_ID}
    context = LogContext(place, params, snapshot_mode, summary_writer=use_summary_writer, run_id=run_ID)
    before = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(before)


def current() -> LogContext | None:
    """Return the innermost context; None outside of all."""
    return _current.get()


def set_snapshot_gap(gap: int) -> None:
    """Let snapshots of the mode `gap` be this many iterations apart.

    Raises:
        ConfigError: there is no `logger_context` around it.
    """
    context = current()
    if context is None:
        raise ConfigError("set_snapshot_gap is called inside of `with logger_context(...)`, whose runs it is for")
    context.snapshot_gap = gap
