"""A run that a command trains: what shows it, how far it goes, its signals, and what is said at its end."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from rlcore.config.sections import Config, Section
from rlcore.core_hooks.progress_lines import ProgressLines
from rlcore.core_hooks.status import StatusHook
from rlcore.core_hooks.time_limit import TimeLimit
from rlcore.errors import FROM_OUTSIDE, RlcoreError, describe
from rlcore.plugins.known import lend
from rlcore.process import interrupts
from rlcore.process.signals import GraceExpired, StopAtOnce, stop_on_signal
from rlcore.process.watchdog import Hung
from rlcore.run.asked import Asked
from rlcore.run.ending import Ending, StoppedAtStart, unexpected
from rlcore.run.ready import Run
from rlcore.run_folder.status import Status
from rlcore.types import EvaluationResult

log = logging.getLogger(__name__)

_SHOWN_BY: Final = ("progress-bar", "console-table")
# of the time of training, and at least so many seconds, from which on a hook is named in the summary
SLOW_SHARE: Final = 0.05
SLOW_SECONDS: Final = 0.05


def command_hooks(asked: Asked, config: Config, status: Status) -> list[Any]:
    """Return the hooks that a run of a command has besides those of its config."""
    hooks: list[Any] = [StatusHook(status), *progress_hooks(config, asked.quiet)]
    if asked.time_limit is not None:
        hooks.append(TimeLimit(*asked.time_limit))
    return hooks


def train_as_asked(run: Run, asked: Asked) -> None:
    """Train a run as far as the command says."""
    # it asks for widgets where a notebook imports it, which trains by other ways
    from tqdm.contrib.logging import logging_redirect_tqdm

    if asked.until is not None:
        run.trainer.stop_at = min(asked.until, run.trainer.stop_at)
    with logging_redirect_tqdm():
        run.trainer.train()


def to_its_end(ending: Ending, train: Callable[[], None], asked: Asked) -> int:
    """Train with signals handled, and say how the run ended; return the exit code.

    Args:
        ending: of the run.
        train: builds and trains it.
        asked: what the command asks.
    """
    # a signal that comes when the run is done changes nothing
    with stop_on_signal(ending.request_stop, asked.grace, ending.saving, ending.give_up) as received:
        code = _ended(ending, train, asked.quiet, received)
        interrupts.settle()
        return code or (128 + received[0] if received and not ending.done else 0)


def say_its_end(ending: Ending, quiet: bool) -> None:
    """Write the status of a run whose loop is over, and print what it reached; the grace time may end meanwhile."""
    try:
        ending.stopped()
    except GraceExpired:  # it comes once
        ending.stopped()
    if not quiet:
        with suppress(GraceExpired):
            sys.stdout.write(f"{summary(ending.built)}\n")


def _ended(ending: Ending, train: Callable[[], None], quiet: bool, received: list[int]) -> int:
    """Train, and say how the run ended; return an exit code other than 0 when neither its end nor a stop ended it."""
    try:
        _train_and_say(ending, train, quiet)
    except StopAtOnce as stopped:
        ending.failed(str(stopped))
        sys.stderr.write("stopped at once\n")
        return 128 + stopped.number
    except Hung as hung:
        ending.failed(str(hung))
        sys.stderr.write(f"error: {hung}\n")
        return 3
    except BaseException as error:
        if ending.run is None and received:  # what was stopped in its middle raised an error of its own
            ending.stopped_at_start()
            return 0
        ending.failed(describe(error))
        if isinstance(error, RlcoreError):
            raise
        return unexpected(error)
    return 0


def _train_and_say(ending: Ending, train: Callable[[], None], quiet: bool) -> None:
    try:
        interrupts.hand_over()
        train()
    except (StoppedAtStart, GraceExpired):  # a part may have swallowed the first, and gone on for the grace time
        if ending.run is None:
            ending.stopped_at_start()
            return
    say_its_end(ending, quiet)


def progress_hooks(config: Config, quiet: bool) -> list[Any]:
    """Return the hook that prints a line now and then, unless something else shows the run, or nothing is to."""
    return [] if quiet or any(_shows(hook) for hook in config.sections["hook"]) else [ProgressLines()]


def _shows(hook: Section) -> bool:
    """Return whether a hook shows how far the run is; a bar may want a terminal for that."""
    always = hook.config.model_dump().get("always", True)
    return hook.provided.component.name in _SHOWN_BY and (always or sys.stderr.isatty())


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
