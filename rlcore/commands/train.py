"""`rlcore train`: build the run, train it with signals handled, and say at the end what was reached."""

from __future__ import annotations

import argparse
import logging
import sys
import traceback
from pathlib import Path

from tqdm.contrib.logging import logging_redirect_tqdm

from rlcore import run_folder
from rlcore.config import read
from rlcore.errors import ConfigError, RlcoreError
from rlcore.resume import WATCHING, ResumeOptions
from rlcore.run import Run, build
from rlcore.sections import validate
from rlcore.signals import GraceExpired, stop_on_signal
from rlcore.stock.status import StatusHook, write_status
from rlcore.summary import summary
from rlcore.watchdog import Heart, Hung, Watchdog

log = logging.getLogger(__name__)


def run(options: argparse.Namespace) -> int:
    """Train; return the exit code."""
    _place_config(options)
    raw = read(Path(options.config), options.set)
    if options.resume:
        folder = Path(options.resume)
        raw.values.setdefault("run", {}).update(folder=str(folder.parent), name=folder.name)
    if options.quiet:
        hooks = raw.values.get("hook", [])
        left_out = {*WATCHING, *(name.removeprefix("core:") for name in WATCHING)}
        raw.values["hook"] = [hook for hook in hooks if hook.get("use") not in left_out]
    config = validate(raw, options.enable, options.disable)
    if options.dry_run:
        build(config, write=False)
        print(f"{options.config}: everything can be built; nothing was written")
        return 0
    folder = Path(config.run.folder) / config.run.name
    process = _Process(run_folder.Status(folder))
    watchdog = Watchdog(process.heart, config.run.hang_after, folder, process.last_resort)
    try:
        with watchdog.watching():
            process.run = built = build(
                config, resume=_resume(options), hooks=[StatusHook(process.status)], heart=process.heart
            )
            for restored in built.report:
                if restored.outcome != "not stateful":
                    log.info("  %s", restored)
            if options.until is not None:
                built.trainer.stop_at = min(options.until, built.trainer.stop_at)
            return _train(process, built, quiet=options.quiet, grace=options.grace)
    except Hung as error:
        process.failed(str(error))
        print(f"error: {error}", file=sys.stderr)
        return 3


class _Process:
    """What is said and saved when the run fails."""

    def __init__(self, status: run_folder.Status) -> None:
        self.status = status
        self.heart = Heart()
        self.run: Run | None = None

    def failed(self, reason: str) -> None:
        """Write the status, and say whether the run can be resumed."""
        if self.run is None:  # nothing was built, so there is nothing to resume
            return
        trainer = self.run.trainer
        resumable = trainer.parts.store is not None and bool(trainer.parts.store.entries())
        write_status(self.status, "failed-resumable" if resumable else "failed", trainer, reason)
        if resumable:
            log.error("the newest checkpoint stands; continue with --resume")

    def last_resort(self, reason: str) -> None:
        """Save what can be saved without the main thread."""
        if self.run is not None and self.run.trainer.saver is not None:
            self.run.trainer.saver.save_boundary(self.run.trainer.parts.facts)
        self.failed(reason)


def _resume(options: argparse.Namespace) -> bool | ResumeOptions:
    if options.resume is None:
        return False
    return ResumeOptions(tuple(options.drop), tuple(options.fresh), options.accept_changes)


def _place_config(options: argparse.Namespace) -> None:
    """Find the config where `--resume CONFIG` or `--resume RUN` stand alone; a run folder holds its own."""
    if options.config is None and (options.resume or "").endswith(".toml"):
        options.config, options.resume = options.resume, ""
    elif options.config is None and options.resume:
        options.config = str(Path(options.resume) / run_folder.CONFIG_FILE)
    elif options.config is None:
        raise ConfigError("rlcore train needs a CONFIG, or --resume RUN")


def _train(process: _Process, built: Run, quiet: bool, grace: float) -> int:
    trainer = built.trainer
    with stop_on_signal(trainer.request_stop, grace) as received, logging_redirect_tqdm():
        try:
            trainer.train()
        except GraceExpired:
            log.warning("the run was over; its shutdown took longer than the grace time")
        except (Exception, KeyboardInterrupt) as error:
            process.failed(f"{type(error).__name__}: {error}")
            if not isinstance(error, RlcoreError | KeyboardInterrupt):
                return _unexpected(error)
            raise
    stopped = trainer.progress.frames < trainer.run.total_frames
    write_status(process.status, "stopped-resumable" if stopped else "done", trainer, trainer.stop_reason or "")
    if not quiet:
        print(summary(built))
    return 128 + received[0] if received else 0


def _unexpected(error: BaseException) -> int:
    """Print an error that is not rlcore's own; one that a hook raised has an exit code of its own."""
    traceback.print_exception(error)
    raised_by_hook = any(note.startswith("raised by hook") for note in getattr(error, "__notes__", []))
    return 7 if raised_by_hook else 1
