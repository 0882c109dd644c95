"""`rlcore sync`: send what the loggers of a run left waiting for their servers."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from rlcore.config import read
from rlcore.context import Context
from rlcore.errors import ConfigError
from rlcore.progress import Progress
from rlcore.run import choose_device
from rlcore.run_folder import CONFIG_FILE, Lock
from rlcore.sections import Section, validate
from rlcore.spool_sender import LINGER, lock_spool
from rlcore.spooling_logger import SpoolingLogger, spool_folder
from rlcore.types import RunInfo


def run(options: argparse.Namespace) -> int:
    """Send, and print a line per logger; 1 when something is left."""
    folder = Path(options.run)
    if not (folder / CONFIG_FILE).is_file():
        raise ConfigError(f"{options.run!r} is not a run folder: it has no {CONFIG_FILE}")
    config = validate(read(folder / CONFIG_FILE), import_files=False)
    info = RunInfo(config.run.name, config.run.seed, config.run.total_frames, folder)
    context = Context(info, choose_device("cpu"), Progress(config.run.total_frames))
    spooling = [s for s in config.sections["logger"] if spool_folder(folder, s.name).is_dir()]
    if not spooling:
        print(f"{folder}: no logger of this run has anything to send")
    patience = _patience(folder)
    left = [_send(section, context, patience, options.seconds) for section in spooling]
    return 1 if any(left) else 0


def _patience(folder: Path) -> float:
    """Return how many seconds to wait for another sender: that of a run that has ended goes on for a minute at most."""
    try:
        Lock(folder).release()
    except ConfigError:  # it is in training, and its loggers send
        return 0.0
    return LINGER


def _send(section: Section, context: Context, patience: float, seconds: float) -> int:
    """Send the spool of one logger, as long as some of it arrives every `seconds`; return how many records are left."""
    logger = section.provided.build(section.config, context.for_component("logger", section.name))
    if not isinstance(logger, SpoolingLogger):
        return 0
    lock = lock_spool(logger.spool.folder, patience)
    logger.spool.go_back()
    lock.release()
    before = left = logger.unsent
    deadline = time.monotonic() + seconds
    while left and not logger.catch_up(0.5):
        if logger.unsent < left:
            deadline = time.monotonic() + seconds
        left = logger.unsent
        if time.monotonic() > deadline:
            break
    logger.close()
    lock_spool(logger.spool.folder, LINGER).release()  # it may still wait for the last answers
    left = logger.unsent
    print(f"{section.name}: {before - left} records sent, {left} left" + (f" ({logger.error})" if left else ""))
    return left
