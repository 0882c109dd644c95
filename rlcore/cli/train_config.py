"""What a command line of `rlcore train` names: the config of a run, its folder, how to go on with it, its launcher."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rlcore.config.common_keys import DEFAULTS
from rlcore.config.core import SAFE_NAME, RanksConfig
from rlcore.config.file import read
from rlcore.config.observers import add_observers, leave_out_shown
from rlcore.config.raw import RawConfig
from rlcore.errors import ConfigError, RlcoreError
from rlcore.plugins.host import PluginHost
from rlcore.run.asked import Asked, ResumeOptions
from rlcore.run_folder import folder as run_folder
from rlcore.run_folder.next_config import settle_after_crash
from rlcore.types.launcher import Launcher
from rlcore.types.optional import missing


def prepared(options: argparse.Namespace) -> RawConfig:
    """Return the config of the run that the command line names, before anything of it is checked."""
    _place_config(options)
    raw = read(Path(options.config), options.set, trust=options.trust)
    if options.resume:
        _name_after(raw, Path(options.resume))
    resumed = None if options.resume is None else run_folder.read_config(place_of(raw))
    add_observers(raw, options.disable, resumed)
    if options.quiet:
        leave_out_shown(raw, options.disable)
    return raw


def _name_after(raw: RawConfig, folder: Path) -> None:
    """Call a run as its folder is called; a folder that people renamed as no run may be called keeps its run's name."""
    place = Path(os.path.abspath(folder))  # of "." and ".." too
    if SAFE_NAME.fullmatch(place.name):
        raw.values.setdefault("run", {}).update(folder=str(folder.parent), name=place.name)


def place_of(raw: RawConfig) -> Path:
    """Return the run folder that a config names; what it should not say there is refused later."""
    run = run_keys(raw)
    return Path(str(run.get("folder", "runs")), str(run.get("name", "run")))


def run_keys(raw: RawConfig) -> dict[str, Any]:
    """Return what a config says of its run, in `[run]` or `[defaults]`, before anything of it is checked."""
    return {**raw.values.get(DEFAULTS, {}), **raw.values.get("run", {})}


def _place_config(options: argparse.Namespace) -> None:
    """Find the config where `--resume CONFIG` or `--resume RUN` stand alone; a run folder holds its own."""
    if options.config is None and (options.resume or "").endswith(".toml"):
        options.config, options.resume = options.resume, ""
    elif options.config is None and options.resume:
        settle_after_crash(Path(options.resume))
        options.config = str(_config_of(Path(options.resume)))
    elif options.config is None:
        raise ConfigError("rlcore train needs a CONFIG, or --resume RUN")


def _config_of(folder: Path) -> Path:
    """Return the config that a run folder holds.

    Raises:
        ConfigError: there is no such folder, or it holds none.
    """
    config = folder / run_folder.CONFIG_FILE
    if not folder.is_dir():
        raise ConfigError(f"--resume: run folder {str(folder)!r} does not exist; `rlcore runs` lists those there are")
    if not config.is_file():
        raise ConfigError(
            f"--resume: {str(folder)!r} holds no {run_folder.CONFIG_FILE}, so it is no run folder, or the run ended "
            "before it began; name the config too: rlcore train CONFIG --resume"
        )
    return config


def resume_options(options: argparse.Namespace) -> ResumeOptions | None:
    """Return how the command line says to go on with a run; None to begin one.

    Raises:
        ConfigError: it says something about a resume, and asks for none.
    """
    if options.resume is None:
        flags = {"--drop": options.drop, "--fresh": options.fresh, "--accept-changes": options.accept_changes}
        for name in (name for name, value in flags.items() if value):
            raise ConfigError(f"{name} says something about a resume; add --resume, or leave it out")
        return None
    return ResumeOptions(tuple(options.drop), tuple(options.fresh), options.accept_changes)


def launcher_of(wanted: Asked) -> type[Launcher]:
    """Return the launcher that `[ranks]` names.

    Raises:
        RlcoreError: says everything that is wrong with the config, where there is no such launcher.
    """
    try:
        return _launcher_class(wanted.ranks, wanted.disable)
    except RlcoreError:
        from rlcore.run.checking import validated

        validated(wanted.raw, wanted.enable, wanted.disable)
        raise


def _launcher_class(ranks: RanksConfig, disable: Iterable[str] = ()) -> type[Launcher]:
    """Return the class of the launcher that `[ranks]` names, without its keys.

    Raises:
        PluginError: there is none of that name; says how to install it.
        ConfigError: it trains nothing.
    """
    host = PluginHost(disable=disable)
    host.load_for(ranks.launcher)
    provided = host.find("launcher", ranks.launcher)
    target: Any = provided.target()
    if lacking := missing(target, Launcher):
        raise ConfigError(
            f"[ranks] use: {provided} trains nothing, as it has no {', '.join(lacking)}; derive it from "
            "rlcore_plugin_ddp.launchers.ForkingLauncher"
        )
    launcher: type[Launcher] = target
    return launcher
