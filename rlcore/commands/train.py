"""`rlcore train`: build the run, train it with signals handled, and say at the end what was reached."""

from __future__ import annotations

import argparse
import logging
import traceback
from pathlib import Path
from typing import Any

from tqdm.contrib.logging import logging_redirect_tqdm

from rlcore import run_folder
from rlcore.config import read
from rlcore.errors import ConfigError, RlcoreError
from rlcore.resume import ResumeOptions
from rlcore.run import Run, build
from rlcore.sections import validate
from rlcore.signals import stop_on_signal
from rlcore.stock.status import StatusHook
from rlcore.summary import summary

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
        raw.values["hook"] = [hook for hook in hooks if hook.get("use") not in ("progress-bar", "core:progress-bar")]
    config = validate(raw, options.enable, options.disable)
    if options.dry_run:
        build(config, write=False)
        print(f"{options.config}: everything can be built; nothing was written")
        return 0
    built = build(config, resume=_resume(options), hooks=_hooks(Path(config.run.folder) / config.run.name))
    for line in built.report:
        log.info("  %s", line)
    if options.until is not None:
        built.trainer.stop_at = min(options.until, built.trainer.stop_at)
    return _train(built, quiet=options.quiet, grace=options.grace)


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


def _hooks(folder: Path) -> list[Any]:
    return [StatusHook(run_folder.Status(folder))]


def _train(built: Run, quiet: bool, grace: float) -> int:
    trainer, folder = built.trainer, built.folder
    assert folder is not None
    status = run_folder.Status(folder)
    with stop_on_signal(trainer.request_stop, grace) as received, logging_redirect_tqdm():
        try:
            trainer.train()
        except (Exception, KeyboardInterrupt) as error:
            resumable = trainer.parts.store is not None and bool(trainer.parts.store.entries())
            reason = f"{type(error).__name__}: {error}"
            status.write("failed-resumable" if resumable else "failed", trainer.progress.frames, reason)
            if resumable:
                log.error("the newest checkpoint stands; continue with --resume")
            if not isinstance(error, RlcoreError | KeyboardInterrupt):
                return _unexpected(error)
            raise
    stopped = trainer.progress.frames < trainer.run.total_frames
    state: run_folder.RunState = "stopped-resumable" if stopped else "done"
    status.write(state, trainer.progress.frames, trainer.stop_reason or "", trainer.last_checkpoint)
    if not quiet:
        print(summary(built))
    return 128 + received[0] if received else 0


def _unexpected(error: BaseException) -> int:
    """Print an error that is not rlcore's own; one that a hook raised has an exit code of its own."""
    traceback.print_exception(error)
    raised_by_hook = any(note.startswith("raised by hook") for note in getattr(error, "__notes__", []))
    return 7 if raised_by_hook else 1
