"""`rlcore train --seeds`: one config with several seeds, each run in a process of its own, and their comparison."""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import rlcore
from rlcore.cli import Answer, Trained, prepared, run_end, train_flags
from rlcore.errors import ConfigError, RlcoreError
from rlcore.process import age, usable_cores
from rlcore.run import Config, check_unchanged_since_latest, validated
from rlcore_plugin_reports.commands.compare import shown
from rlcore_plugin_reports.comparison import compare
from rlcore_plugin_reports.seeds.child import Child
from rlcore_plugin_reports.seeds.display import Display, state_of, why_failed
from rlcore_plugin_reports.seeds.plan import Seed, plan, seeds_of
from rlcore_plugin_reports.seeds.pool import train_all

log = logging.getLogger(__name__)

# for which the companion of a process that is gone holds its lock
_LEFT_BEHIND_SECONDS: Final = 3.0
# of libraries that would else take every core in every process
_THREADS: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# flags that are about all seeds, that say which config it is, and that a run which begins refuses
_OF_THIS_COMMAND: Final = ("seeds", "jobs", "dry_run", "json")
_OF_THE_CONFIG: Final = ("set", "enable", "disable")
_OF_A_RESUME: Final = ("resume", "drop", "fresh", "accept_changes")


def train_seeds(options: argparse.Namespace) -> Answer:
    """Train every seed; the exit code is 0, 128 plus the number of a signal that stopped them, or that of a failure."""
    if options.config is None or options.resume:
        raise ConfigError("--seeds is about the runs of a CONFIG: rlcore train CONFIG --seeds N, and --resume after it")
    config, starts = _config(options), _Starts(options)
    numbers = seeds_of(options.seeds, config.run.seed)
    target = min(options.until or config.run.horizon, config.run.horizon)
    resume = options.resume is not None
    seeds = plan(config.run.place, numbers, target, resume, options.grace + _LEFT_BEHIND_SECONDS)
    _check_each(options, seeds)
    if options.dry_run:
        rlcore.build(config, write=False).close()
        print(f"{options.config}: everything can be built; nothing was written. Runs: {_folders(seeds)}")
        return Answer(Trained([]))
    jobs = min(options.jobs or 1, len(seeds))
    environment = _environment(jobs, config.run.threads)
    children = [Child(seed, partial(arguments_of, options, seed), environment) for seed in seeds]
    for child in children:
        child.read_files()
    display = Display(children, target, sys.stdout, config.run.clock)
    received = train_all(
        [child for child in children if not child.seed.finished],
        jobs,
        starts,
        (lambda: None) if options.quiet else display.show,
    )
    code = _said(options, children, received)
    return Answer(Trained([run_end(seed.folder) for seed in seeds]), code=code or (2 if starts.refused else 0))


def _config(options: argparse.Namespace, seed: Seed | None = None) -> Config:
    """Return the config as `rlcore train` will see it: that of a seed whose run goes on, or as it is.

    Raises:
        ConfigError: says everything that is wrong with it; or it differs from that of the run.
    """
    changes = [] if seed is None else _changes(seed)
    resume = None if seed is None else ""
    raw = prepared(argparse.Namespace(**{**vars(options), "set": [*options.set, *changes], "resume": resume}))
    config = validated(raw, options.enable, options.disable)
    if seed is not None:
        check_unchanged_since_latest(config, seed.folder)
    return config


def _check_each(options: argparse.Namespace, seeds: Sequence[Seed]) -> None:
    """See, before any is started, that every run that is there can go on with the config."""
    for seed in seeds:
        if not seed.goes_on or options.accept_changes:
            continue
        try:
            _config(options, seed)
        except ConfigError as error:
            raise ConfigError(f"{seed.folder}: {error}") from error


def _changes(seed: Seed) -> list[str]:
    return [f"run.seed={seed.number}", f"run.name={seed.folder.name}"]


def arguments_of(options: argparse.Namespace, seed: Seed) -> list[str]:
    """Return the arguments of `rlcore` that train one of the seeds: the flags that are not about all of them."""
    values = {name: value for name, value in vars(options).items() if name not in _OF_THIS_COMMAND}
    values["set"] = [*options.set, *_changes(seed)]
    if options.max_time is not None:
        values["max_time"] = f"{max(1, seconds_left(options))}s"
    if not seed.goes_on:
        values = {name: value for name, value in values.items() if name not in _OF_A_RESUME}
    return ["train", str(options.config), *_written(values)]


def _written(values: Mapping[str, Any]) -> list[str]:
    """Return values of flags of `rlcore train` as they are typed; those that are as when nothing is typed are not."""
    words: list[str] = []
    for action in train_flags():
        value = values.get(action.dest, action.default)
        if value == action.default:
            continue
        flag = action.option_strings[-1]
        if action.nargs == 0 or (action.nargs == "?" and value == action.const):
            words.append(flag)
        else:
            words += [part for one in (value if isinstance(value, list) else [value]) for part in (flag, str(one))]
    return words


def _environment(jobs: int, threads: int) -> dict[str, str]:
    """Return the environment of each process: no library takes more than its part of the cores."""
    cores = usable_cores()
    if threads * jobs > cores:
        log.warning("%d jobs with %d threads each have %d cores, so they wait for each other", jobs, threads, cores)
    part = str(max(1, cores // jobs))
    return {**dict.fromkeys(_THREADS, part), **os.environ}


class _Starts:
    """Says whether a further seed may be started: the config is the same, and there is time left.

    Attributes:
        refused: why none is started any more; empty while they are.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.refused = ""
        self._options = options
        self._first = self._read()

    def __call__(self) -> bool:
        if self._read() != self._first:
            self.refused = f"{self._options.config} was changed meanwhile"
            log.error("error: %s, so no further seed is started", self.refused)
        return not self.refused and (self._options.max_time is None or seconds_left(self._options) > 0)

    def _read(self) -> dict[str, Any] | None:
        options = self._options
        try:
            return rlcore.load_config(
                options.config, options.set, options.enable, options.disable, options.trust
            ).resolved()
        except RlcoreError:
            return None


def seconds_left(options: argparse.Namespace) -> int:
    """Return how much of `--max-time` is left to this command."""
    return int(options.max_time - age())


def _said(options: argparse.Namespace, children: Sequence[Child], received: Sequence[int]) -> int:
    """Print how it ended and what was reached; return the exit code."""
    failed = [child for child in children if state_of(child) == "failed"]
    for child in failed:
        why = why_failed(child).removeprefix("error: ")
        print(f"error: seed {child.seed.number}: {why}; see {child.log}", file=sys.stderr)
    left = [child for child in children if state_of(child) in ("stopped", "waiting", "failed")]
    if left and not options.quiet:
        print(f"{len(left)} of {len(children)} not done; continue: {_continued(options)}")
    if not options.quiet:
        _compared([child for child in children if child not in failed])
    if received and left:
        return 128 + received[0]
    if failed:
        code = failed[0].code or 1
        return code if code > 0 else 128 - code
    return 0


def _continued(options: argparse.Namespace) -> str:
    """Return the command that goes on."""
    seeds, config = ({name: vars(options)[name] for name in names} for names in (("seeds", "jobs"), _OF_THE_CONFIG))
    return shlex.join(["rlcore", "train", str(options.config), *_written(seeds), *_written(config), "--resume"])


def _compared(children: Sequence[Child]) -> None:
    """Print the comparison of the runs that have evaluations."""
    folders = [child.seed.folder for child in children if child.score is not None]
    if not folders:
        return
    try:
        print("\n" + shown(compare(folders)), end="")
    except ConfigError as error:
        log.info("no comparison: %s", error)


def _folders(seeds: Sequence[Seed]) -> str:
    return ", ".join(str(seed.folder) for seed in seeds)
