"""`rlcore train`: its arguments, what they ask, and who trains. What reads a config is imported when there is one."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rlcore.cli.answers import Answer, add_json
from rlcore.cli.arguments import duration, override_arguments, positive, seconds, spoken
from rlcore.cli.trained import Trained, run_end
from rlcore.errors import ConfigError, RlcoreError
from rlcore.process.this_process import age
from rlcore.run_folder.status import read_status

if TYPE_CHECKING:
    from rlcore.run.asked import Asked

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
    add_json(parser, Trained)


def train_flags() -> list[argparse.Action]:
    """Return the flags of the command, for whoever types it for a process of its own."""
    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser)
    return [action for action in parser._actions if action.option_strings]


def run(options: argparse.Namespace) -> Answer:
    """Train; return how it ended."""
    if options.seeds is not None:
        from rlcore.plugins.known import lend

        _check_alone("--seeds trains each seed in one process; leave torchrun out")
        answer: Answer = lend("rlcore.cli", "train_seeds", "rlcore train --seeds")(options)
        return answer
    if options.jobs is not None:
        raise ConfigError("--jobs says how many seeds are trained at a time; add --seeds")
    wanted, error = asked_by(options), None
    status = read_status(wanted.place)
    try:
        code = _train(wanted, options.dry_run)
    except RlcoreError as raised:
        code, error = raised.exit_code, raised
    touched = read_status(wanted.place) != status
    return Answer(Trained([run_end(wanted.place)] if touched else []), code=code, error=error)


def _train(wanted: Asked, dry_run: bool) -> int:
    """Train in this process, or by the launcher of the ranks; return the exit code."""
    if "ranks" not in wanted.raw.values or dry_run:
        from rlcore.cli import train_alone

        _check_alone("the config has no [ranks], so each would train the whole run; add --set ranks.count={size}")
        return train_alone.run(wanted, dry_run)
    from rlcore.cli.train_config import launcher_of

    return launcher_of(wanted).train(wanted)


def _check_alone(why: str) -> None:
    """Refuse to train in a process that torchrun started beside others, which would train the same.

    Args:
        why: each trains by itself, and what to do.

    Raises:
        ConfigError: it is one of several.
    """
    from rlcore.config.core import TORCHRUN

    size = os.environ.get("WORLD_SIZE", "1") if TORCHRUN in os.environ else "1"
    if size != "1":
        raise ConfigError(f"torchrun started {size} processes, and {why.format(size=size)}")


def asked_by(options: argparse.Namespace) -> Asked:
    """Return what the command line asks.

    Raises:
        ConfigError: it cannot be read, or says something about a resume and asks for none.
    """
    # what the help of the command does without
    from rlcore.cli.train_config import place_of, prepared, resume_options, run_keys
    from rlcore.run.asked import Asked

    raw, limit = prepared(options), options.max_time
    return Asked(
        raw=raw,
        place=Path(options.resume) if options.resume else place_of(raw),
        clock="updates" if "total_updates" in run_keys(raw) else "frames",
        resume=resume_options(options),
        until=options.until,
        time_limit=None if limit is None else (time.monotonic() - age() + limit, spoken(limit)),
        quiet=options.quiet,
        grace=options.grace,
        enable=tuple(options.enable),
        disable=tuple(options.disable),
    )
