"""`rlcore train`: its arguments, which run they mean, and who trains it. Training is imported by whoever does it."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from rlcore.cli.arguments import duration, override_arguments, positive, seconds, spoken
from rlcore.config.common_keys import DEFAULTS
from rlcore.config.core import SAFE_NAME, TORCHRUN, RanksConfig
from rlcore.config.file import read
from rlcore.config.observers import add_observers, leave_out_shown
from rlcore.config.raw import RawConfig
from rlcore.errors import ConfigError, RlcoreError
from rlcore.plugins.host import PluginHost
from rlcore.plugins.known import lend
from rlcore.process.this_process import age
from rlcore.run.asked import Asked, ResumeOptions
from rlcore.run_folder import folder as run_folder
from rlcore.run_folder.next_config import settle_after_crash
from rlcore.types.launcher import Launcher
from rlcore.types.optional import missing

EXIT_CODES: Final = {
    0: "done",
    1: "an error that rlcore did not expect; the traceback says where; or `rlcore sync` left something",
    2: "the config, the command line, a plugin or the run folder cannot be used; no frame was collected",
    3: "an environment raised, gave what is not finite, or failed `rlcore env check`; or nothing moved any more",
    4: "a loss or gradient was not finite",
    5: "a checkpoint could not be written or read, or `rlcore prove` found what does not hold",
    7: "a hook raised, or broke the contract of its point",
    129: "stopped by SIGHUP, as a closed terminal sends it, state saved",
    130: "stopped by Ctrl-C, state saved; or at once by a second one, and the latest checkpoint stands",
    131: "stopped at once by SIGQUIT; the latest checkpoint stands",
    137: "killed; by the companion of `rlcore train` when the process kept the GIL or did not end",
    138: "stopped by SIGUSR1, state saved",
    140: "stopped by SIGUSR2, state saved",
    142: "stopped by SIGALRM, state saved",
    143: "stopped by SIGTERM, state saved",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.epilog = "\n".join(["exit codes of rlcore:", *(f"  {code:>3}  {text}" for code, text in EXIT_CODES.items())])
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("config", metavar="CONFIG", nargs="?", help="a TOML file; with --resume RUN, default: its own")
    override_arguments(parser)
    parser.add_argument(
        "--until",
        type=positive,
        metavar="N",
        help="stop at N frames, or updates where the run counts them; schedules keep their horizon",
    )
    parser.add_argument(
        "--max-time",
        type=duration,
        metavar="TIME",
        help="stop, with the state saved, after the iteration in which this process is so old: 90s, 30m, 3h55m, 1d",
    )
    parser.add_argument(
        "--resume", nargs="?", const="", metavar="RUN", help="continue the run of CONFIG, or the run folder RUN"
    )
    parser.add_argument(
        "--seeds", metavar="N|LIST", help="train N seeds from run.seed on, or those of a list such as 1,2,5; a run each"
    )
    parser.add_argument("--jobs", type=positive, metavar="J", help="with --seeds: how many at a time; default: 1")
    parser.add_argument(
        "--drop", action="append", default=[], metavar="NAME", help="leave the checkpoint's state of NAME unused"
    )
    parser.add_argument(
        "--fresh", action="append", default=[], metavar="NAME", help="start component NAME over, and what depends on it"
    )
    parser.add_argument(
        "--accept-changes", action="store_true", help="resume although the config, or the run, is not the same"
    )
    parser.add_argument(
        "--grace",
        type=seconds,
        default=20.0,
        metavar="SECONDS",
        help="time for a stop by signal, and for what plugins left running at the end; default: 20",
    )
    parser.add_argument("--dry-run", action="store_true", help="build everything, train nothing, write nothing")
    parser.add_argument("--quiet", action="store_true", help="print errors alone: no progress, no warnings, no summary")


def train_flags() -> list[argparse.Action]:
    """Return the flags of the command, for whoever types it for a process of its own."""
    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser)
    return [action for action in parser._actions if action.option_strings]


def run(options: argparse.Namespace) -> int:
    """Train; return the exit code."""
    if options.seeds is not None:
        _check_alone("--seeds trains each seed in one process; leave torchrun out")
        code: int = lend("rlcore.cli", "train_seeds", "rlcore train --seeds")(options)
        return code
    if options.jobs is not None:
        raise ConfigError("--jobs says how many seeds are trained at a time; add --seeds")
    wanted = asked_by(options)
    if "ranks" not in wanted.raw.values or options.dry_run:
        from rlcore.cli import train_alone

        _check_alone("the config has no [ranks], so each would train the whole run; add --set ranks.count={size}")
        return train_alone.run(wanted, options.dry_run)
    return _launcher(wanted).train(wanted)


def _launcher(wanted: Asked) -> type[Launcher]:
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


def _check_alone(why: str) -> None:
    """Refuse to train in a process that torchrun started beside others, which would train the same.

    Args:
        why: each trains by itself, and what to do.

    Raises:
        ConfigError: it is one of several.
    """
    size = os.environ.get("WORLD_SIZE", "1") if TORCHRUN in os.environ else "1"
    if size != "1":
        raise ConfigError(f"torchrun started {size} processes, and {why.format(size=size)}")


def asked_by(options: argparse.Namespace) -> Asked:
    """Return what the command line asks.

    Raises:
        ConfigError: it cannot be read, or says something about a resume and asks for none.
    """
    raw, limit = prepared(options), options.max_time
    return Asked(
        raw=raw,
        place=Path(options.resume) if options.resume else place_of(raw),
        clock="updates" if "total_updates" in run_keys(raw) else "frames",
        resume=_resume_options(options),
        until=options.until,
        time_limit=None if limit is None else (time.monotonic() - age() + limit, spoken(limit)),
        quiet=options.quiet,
        grace=options.grace,
        enable=tuple(options.enable),
        disable=tuple(options.disable),
    )


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
    names = (run.get("folder", "runs"), run.get("name", "run"))
    return Path(*(str(name) for name in names))


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


def _resume_options(options: argparse.Namespace) -> ResumeOptions | None:
    """Return how the command line says to go on with a run; None to begin one.

    Raises:
        ConfigError: it says something about a resume, and asks for none.
    """
    if options.resume is None:
        given = {"--drop": options.drop, "--fresh": options.fresh, "--accept-changes": options.accept_changes}
        for name in (name for name, value in given.items() if value):
            raise ConfigError(f"{name} says something about a resume; add --resume, or leave it out")
        return None
    return ResumeOptions(tuple(options.drop), tuple(options.fresh), options.accept_changes)
