"""`rlcore sync`: send what the loggers of a run left waiting for their servers.

Of the plugins that the run folder names, those of its loggers that have a spool are imported, by their entry points.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from rlcore.config.entries import free_name
from rlcore.config.file import read
from rlcore.config.raw import RawConfig
from rlcore.config.sections import Section, find_component
from rlcore.config.validation import core_section
from rlcore.errors import ConfigError
from rlcore.files.lock import Lock
from rlcore.plugins.host import PluginHost
from rlcore.run.process_state import choose_device
from rlcore.run_folder.folder import CONFIG_FILE
from rlcore.spooling.logger import SpoolingLogger, spool_folder
from rlcore.spooling.sender import LINGER, lock_spool
from rlcore.types import RunInfo
from rlcore.types.context import Context
from rlcore.types.progress import Progress
from rlcore.types.settings import Secret


def run(options: argparse.Namespace) -> int:
    """Send, and print where to and a line per logger; 1 when something is left."""
    folder = Path(options.run)
    if not (folder / CONFIG_FILE).is_file():
        raise ConfigError(f"{options.run!r} is not a run folder: it has no {CONFIG_FILE}")
    spooling = list(_spooling(read(folder / CONFIG_FILE), folder))
    if not spooling:
        print(f"{folder}: no logger of this run has anything to send")
        return 0
    patience = _patience(folder)
    left = [_send(section, context, patience, options.seconds) for section, context in spooling]
    return 1 if any(left) else 0


def _spooling(raw: RawConfig, folder: Path) -> Iterator[tuple[Section, Context]]:
    """Yield every logger that has a spool, with what it is built from.

    Raises:
        ConfigError: the sections of the run and its loggers are wrong.
        PluginError: the plugin of such a logger is not installed, or broken.
        StorageError: a spool would be outside of the run folder.
    """
    names = _names(raw)
    waiting = {name for name in names if spool_folder(folder, name).is_dir()}
    if not waiting:
        return
    problems: list[str] = []
    settings = core_section(raw, "run", problems)
    if settings is None:
        raise ConfigError(f"{folder / CONFIG_FILE}: {'; '.join(problems)}")
    info = RunInfo(settings.name, settings.seed, settings.frames, folder, {}, settings.total_updates)
    context = Context(info, choose_device("cpu"), Progress(settings.frames, total_updates=settings.total_updates))
    host = PluginHost()
    for name in names:
        if name in waiting:
            keys = {key: value for key, value in names[name].items() if key not in ("use", "name", "required")}
            provided, config = find_component(host, "logger", names[name]["use"], keys)
            yield Section("logger", name, provided, config), context.for_component("logger", name)


def _names(raw: RawConfig) -> dict[str, dict[str, Any]]:
    """Return the keys of every logger of a config by its name, which is that of its component when it has none."""
    tables = raw.values.get("logger", [])
    named: dict[str, dict[str, Any]] = {}
    for keys in tables if isinstance(tables, list) else [tables]:
        use = keys.get("use") if isinstance(keys, dict) else None
        if not isinstance(use, str):
            raise ConfigError(f"{raw.path}: [logger] use: missing; name the logger")
        named[str(keys.get("name") or free_name(use.rpartition(":")[2], set(named)))] = keys
    return named


def _patience(folder: Path) -> float:
    """Return how many seconds to wait for another sender: that of a run that has ended goes on for a minute at most."""
    try:
        Lock(folder).release()
    except ConfigError:  # it is in training, and its loggers send
        return 0.0
    return LINGER


def _send(section: Section, context: Context, patience: float, seconds: float) -> int:
    """Send the spool of one logger, as long as some of it arrives every `seconds`; return how many records are left."""
    logger = section.provided.build(section.config, context)
    if not isinstance(logger, SpoolingLogger):
        return 0
    lock = lock_spool(logger.spool.folder, patience)
    logger.spool.go_back()
    lock.release()
    before = left = logger.unsent
    aside_before = logger.spool.count_set_aside()
    if left:
        print(f"{section.name}: sending to {logger.destination}{_with_secrets(section.config)}", flush=True)
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
    why = f" ({logger.error})" if left and logger.error else ""
    if before:
        print(f"{section.name}: {before - left - aside} records sent{where}, {left} left{why}")
    else:
        print(f"{section.name}: nothing waits, {logger.spool.sent.confirmed_records} records have arrived")
    return left


def _with_secrets(config: BaseModel) -> str:
    """Return which environment variables go there too, since the run folder names them."""
    names = [value.env for value in vars(config).values() if isinstance(value, Secret)]
    return f", with the value of {', '.join(names)}" if names else ""
