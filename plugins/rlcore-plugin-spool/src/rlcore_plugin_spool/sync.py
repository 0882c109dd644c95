"""The command `rlcore sync`: send what the loggers of a run left waiting for their servers."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from rlcore.cli import Answer, add_json
from rlcore.errors import ConfigError
from rlcore.files import Lock
from rlcore.types import Secret
from rlcore_plugin_spool.logger import SpoolingLogger, spool_folder
from rlcore_plugin_spool.sender import LINGER, lock_spool

# what may be asked for, as the system cannot wait for ever: 115 days
_MOST_SECONDS: Final = 10_000_000


@dataclass(frozen=True)
class SyncedLogger:
    """A logger, and what became of its records.

    Attributes:
        name: of the logger.
        destination: where its server is.
        sent: records that arrived just now.
        set_aside: records that the server refused, which are kept in a file.
        left: records that still wait.
        error: why; empty where none waits.
    """

    name: str
    destination: str
    sent: int
    set_aside: int
    left: int
    error: str


@dataclass(frozen=True)
class Synced:
    """What the loggers of a run sent.

    Attributes:
        folder: of the run.
        loggers: those that send to servers.
    """

    folder: str
    loggers: list[SyncedLogger]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore sync`."""
    parser.description = (
        "Send what the loggers of a run left waiting for their servers; exit code 1 when something is left."
    )
    parser.add_argument("run", metavar="RUN", help="a run folder")
    parser.add_argument(
        "--seconds", type=_seconds, default=60.0, metavar="N", help="how long to wait for a server; default: 60"
    )
    add_json(parser, Synced)


def run(options: argparse.Namespace) -> Answer:
    """Send, and print where to and a line per logger; the exit code is 1 when something is left."""
    from rlcore.run import build_loggers  # imports torch, for which the help of the command need not wait

    folder = Path(options.run)
    loggers = build_loggers(folder, lambda name: spool_folder(folder, name).is_dir())
    spooling = [(one.name, one.logger, one.config) for one in loggers if isinstance(one.logger, SpoolingLogger)]
    if not spooling:
        print(f"{folder}: no logger of this run has anything to send")
        return Answer(Synced(options.run, []))
    patience = _patience(folder)
    synced = [_send(name, logger, config, patience, options.seconds) for name, logger, config in spooling]
    return Answer(Synced(options.run, synced), code=1 if any(logger.left for logger in synced) else 0)


def _seconds(text: str) -> float:
    """Return a number of seconds."""
    value = float(text)
    if not 0 <= value <= _MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"must be from 0 to {_MOST_SECONDS:,} seconds")
    return value


def _patience(folder: Path) -> float:
    """Return how many seconds to wait for another sender: that of a run that has ended goes on for a minute at most."""
    try:
        Lock(folder).release()
    except ConfigError:  # it is in training, and its loggers send
        return 0.0
    return LINGER


def _send(name: str, logger: SpoolingLogger, config: BaseModel, patience: float, seconds: float) -> SyncedLogger:
    """Send the spool of one logger, as long as some of it arrives every `seconds`."""
    lock = lock_spool(logger.spool.folder, patience)
    logger.spool.refresh()  # another sender may have got further, while it was waited for
    logger.spool.go_back()
    lock.release()
    waiting = left = logger.unsent
    aside_before = logger.spool.count_set_aside()
    if left:
        print(f"{name}: sending to {logger.destination}{_with_secrets(config)}", flush=True)
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
    aside = logger.spool.count_set_aside() - aside_before
    where = f", {aside} set aside in {logger.spool.set_aside_file}" if aside else ""
    error = logger.error if left and logger.error else ""
    why = f" ({error})" if error else ""
    sent = max(0, waiting - left - aside)
    if waiting:
        print(f"{name}: {waiting - left - aside} records sent{where}, {left} left{why}")
    else:
        print(f"{name}: nothing waits, {logger.spool.sent.confirmed_records} records have arrived")
    return SyncedLogger(name, logger.destination, sent, aside, left, str(error))


def _with_secrets(config: BaseModel) -> str:
    """Return which environment variables go there too, since the run folder names them."""
    names = [value.env for value in vars(config).values() if isinstance(value, Secret)]
    return f", with the value of {', '.join(names)}" if names else ""
