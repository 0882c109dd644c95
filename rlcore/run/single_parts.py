"""Parts built by themselves, without a run: a checkpoint back end by its name, the loggers of a run folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import BaseModel

from rlcore.checkpoints.backend import Backend
from rlcore.config.core import DEFAULT_USE
from rlcore.config.entries import names_of
from rlcore.config.file import BACKEND_ALIASES, backend_of_environment, read
from rlcore.config.raw import RawConfig
from rlcore.config.sections import find_component
from rlcore.config.validation import core_section
from rlcore.errors import ConfigError
from rlcore.plugins.host import PluginHost
from rlcore.run_folder.folder import CONFIG_FILE, check_is_run
from rlcore.types import Logger, RunInfo
from rlcore.types.context import Context
from rlcore.types.progress import Progress


def open_backend(name: str | None = None) -> Backend:
    """Return the back end of a name, built with its defaults.

    Args:
        name: default: the one that the environment variable `CKPT_BACKEND` names, or torch.

    Raises:
        PluginError: it is not installed; says how to install it.
    """
    use = BACKEND_ALIASES.get(name or "", name) or backend_of_environment() or DEFAULT_USE["checkpoint"]
    provided, config = find_component(PluginHost(), "checkpointer", use, {})
    context = Context.alone("checkpoints").for_component("checkpointer", provided.component.name)
    return Backend(provided.build(config, context), provided.component.name)


@dataclass(frozen=True)
class LoggerOfRun:
    """A logger of a run folder.

    Attributes:
        name: of the logger instance.
        config: the keys of its section.
        logger: built as the run builds it.
    """

    name: str
    config: BaseModel
    logger: Logger


def build_loggers(folder: Path, wanted: Callable[[str], bool]) -> list[LoggerOfRun]:
    """Build loggers of a run folder: their plugins alone are imported, by entry points, and no code of the folder runs.

    Args:
        folder: of the run.
        wanted: says of the name of a logger whether it is built.

    Raises:
        ConfigError: it is no run folder, or the sections of the run and of these loggers are wrong.
        PluginError: the plugin of such a logger is not installed, or broken.
    """
    check_is_run(folder)
    raw = read(folder / CONFIG_FILE)
    tables = raw.values.get("logger", [])
    named = {name: keys for name, keys in zip(names_of(tables), tables, strict=True) if wanted(name)}
    if not named:
        return []
    host, context = PluginHost(), _context(raw, folder)
    built = []
    for name, keys in named.items():
        if not isinstance(keys.get("use"), str):
            raise ConfigError(f"{raw.path}: [logger] use: missing; name the logger")
        own = {key: value for key, value in keys.items() if key not in ("use", "name", "required")}
        provided, config = find_component(host, "logger", keys["use"], own)
        built.append(LoggerOfRun(name, config, provided.build(config, context.for_component("logger", name))))
    return built


def _context(raw: RawConfig, folder: Path) -> Context:
    """Return what the loggers of a run folder are built from.

    Raises:
        ConfigError: the section [run] is wrong.
    """
    problems: list[str] = []
    run = core_section(raw, "run", problems)
    if run is None:
        raise ConfigError(f"{raw.path}: {'; '.join(problems)}")
    info = RunInfo(run.name, run.seed, run.frames, folder, {}, run.total_updates)
    return Context(info, torch.device("cpu"), Progress(run.frames, total_updates=run.total_updates))
