"""What a run reached, in a few lines: where things are, frames per second, last and best evaluation."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from rlcore.errors import FROM_OUTSIDE, RlcoreError, describe
from rlcore.plugins.known import lend
from rlcore.run.ready import Run
from rlcore.types import EvaluationResult

log = logging.getLogger(__name__)

# of the time of training, and at least so many seconds, from which on a hook is named in the summary
SLOW_SHARE: Final = 0.05
SLOW_SECONDS: Final = 0.05


def summary(run: Run) -> str:
    """Return the summary; draws `curves.png` where what draws it is installed and the run has metrics."""
    trainer = run.trainer
    progress, seconds = trainer.progress, trainer.seconds_trained
    lines = [
        f"{trainer.run_info.name}: {progress.frames:,} frames, {progress.updates:,} updates, "
        f"{progress.episodes:,} episodes" + (f" (stopped: {trainer.stop_reason})" if trainer.stop_reason else ""),
        f"  speed            {_speed(run, seconds)}",
        f"  last evaluation  {_evaluation(trainer.last_evaluation, progress.unit)}",
        f"  best evaluation  {_evaluation(trainer.best_evaluation, progress.unit)}",
        f"  run folder       {run.folder}",
    ]
    lines += [f"  checkpoint       {_as_named(run, trainer.last_checkpoint)}"] if trainer.last_checkpoint else []
    curves = _curves(run)
    lines += [f"  curves           {curves}"] if curves else []
    lines += [
        f"  slow hook        {hook.name!r} took {hook.seconds:.1f} s, training {seconds:.1f} s"
        for hook in trainer.hooks.hooks
        if seconds and not hook.internal and hook.seconds > max(SLOW_SHARE * seconds, SLOW_SECONDS)
    ]
    lines += [f"  lost             {count} {cause}" for cause, count in trainer.lost().items()]
    lines += [
        f"  not confirmed    {writer.unsent} records of logger {writer.name}: rlcore sync {run.folder}"
        for writer in trainer.metrics.writers
        if writer.unsent
    ]
    return "\n".join(lines)


def _speed(run: Run, seconds: float) -> str:
    done, clock = run.trainer.done_here, run.trainer.progress.clock
    return f"{done / seconds:,.0f} {clock} per second, evaluation not counted" if seconds else f"no {clock} trained"


def _evaluation(result: EvaluationResult | None, unit: str) -> str:
    if result is None:
        return "none"
    episodes = len(result.returns)
    return (
        f"return {result.mean_return:,.1f} ({min(result.returns):,.1f} to {max(result.returns):,.1f}), "
        f"length {result.mean_length:,.0f}, {episodes} episodes at {unit} {result.frames:,}"
    )


def _curves(run: Run) -> str | None:
    folder = run.trainer.run_info.folder
    assert folder is not None
    try:
        plot_runs = lend("rlcore.run", "plot_runs", "the drawing of curves")
        return str(_as_named(run, plot_runs([folder], folder / "curves.png")))
    except FROM_OUTSIDE:
        raise
    except BaseException as error:  # whatever a library does there: the run is done
        log.info("no curves.png: %s", error if isinstance(error, RlcoreError) else describe(error))
        return None


def _as_named(run: Run, path: Path) -> Path:
    """Return a path below the run folder as the user named that."""
    assert run.folder is not None
    assert run.trainer.run_info.folder is not None
    return run.folder / path.relative_to(run.trainer.run_info.folder)
