"""From a config to a ready trainer in its folder: claim the folder, build the parts, begin or resume.

In which order the parts are built is in `builder.py`; what happens then is in the room `training/`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from rlcore.config.sections import Config
from rlcore.errors import ConfigError
from rlcore.plugins.known import lend
from rlcore.run import resume as resuming
from rlcore.run.asked import ResumeOptions
from rlcore.run.builder import RunBuilder
from rlcore.run.claim import claimed, claimed_elsewhere
from rlcore.run.process_state import choose_device, prepare_process
from rlcore.run.ready import Run
from rlcore.run_folder import folder as run_folder
from rlcore.run_folder import run_id as run_ids
from rlcore.state.exactness import inexact_device, inexact_parts
from rlcore.state.generators import seed_all
from rlcore.state.snapshot import Snapshot
from rlcore.types import RunInfo
from rlcore.types.context import Context
from rlcore.types.group import Alone, Group
from rlcore.types.heart import Heart
from rlcore.types.progress import Progress

log = logging.getLogger(__name__)


def build(
    config: Config,
    *,
    write: bool = True,
    resume: bool | ResumeOptions = False,
    hooks: Iterable[Any] = (),
    heart: Heart | None = None,
    place: Path | None = None,
    group: Group | None = None,
    kept: Snapshot | None = None,
) -> Run:
    """Build everything that the config names, in order, and restore the latest checkpoint when resuming.

    Args:
        config: validated.
        write: whether to make the run folder and write into it.
        resume: continue the run in that folder, perhaps with options.
        hooks: further hook instances, after those of the config.
        heart: counts what moves, for a watchdog.
        place: the run folder; default: the one that `[run]` names.
        group: the ranks that train together, of which this process is one. Whoever started them has claimed the folder;
            rank 0 writes into it, and the others read what they resume.
        kept: the state of this rank from which the run goes on, in the place of the latest checkpoint.

    Raises:
        RlcoreError: something cannot be built; says what and whose it is.
    """
    device = choose_device(config.run.device)
    options = ResumeOptions() if resume is True else resume or None
    named = (place or config.run.place) if write else None
    if write and group is None and config.ranks is not None:
        raise ConfigError("[ranks] is for `rlcore train`, which starts the ranks; leave it out, or use the command")
    rank = 0 if group is None else group.rank
    claiming = claimed(named, options is not None) if group is None else claimed_elsewhere(None if rank else named)
    with claiming as claim:
        if claim.folder is not None and options is not None and not options.accept_changes:
            resuming.check_unchanged_since_latest(config, claim.folder)
        prepare_process(config.run)
        if write and not rank:
            log.info("device %s, CPU threads: %d", device, config.run.threads)
        own = config if config.ranks is None else lend("rlcore.run", "divided", "[ranks]")(config, config.ranks.count)
        builder = RunBuilder(own, _context(config, claim.folder, device, heart or Heart(), group or Alone()))
        run = Run(builder.trainer(hooks), config, named, [], builder.backend)
        if rank:
            seed_all(config.run.seed + rank)  # the weights are drawn; from here on the ranks are to differ
            if kept is not None:
                resuming.go_on_from(run, kept)
            elif options is not None and named is not None:
                run.report = resuming.go_on_beside(run, named.absolute(), options)
        if claim.folder is not None:
            _begin(run, claim.folder, device, options, kept)
            run.trainer.parts.release = claim.release
    return run


def _context(config: Config, folder: Path | None, device: torch.device, heart: Heart, group: Group) -> Context:
    """Return what every component is built with, before any is."""
    return Context(
        run=RunInfo(
            config.run.name, config.run.seed, config.run.frames, folder, config.resolved(), config.run.total_updates
        ),
        device=device,
        progress=Progress(config.run.frames, total_updates=config.run.total_updates),
        heart=heart,
        group=group,
        plugin_files=config.host.files(),
    )


def _begin(run: Run, folder: Path, device: torch.device, options: ResumeOptions | None, kept: Snapshot | None) -> None:
    """Say whether the run is exact, write id and config or restore what is to be resumed, and begin to log."""
    parts, resolved = run.trainer.parts, run.trainer.run_info.resolved_config
    try:
        _say_whether_exact(run, device)
        run_id = (run_ids.read_id(folder) if options is not None else "") or run_ids.new_id()
        parts.provenance = replace(parts.provenance, run_id=run_id)
        if options is None:
            run_ids.write_id(folder, run_id)
            run_folder.write_config(folder, dict(resolved))
        elif kept is not None:
            resuming.go_on_from(run, kept)
        else:
            run.report = resuming.go_on(run, folder, options)
        for writer in run.trainer.metrics.writers:
            writer.start()
            writer.log_hparams(resolved)
    except BaseException:
        run.trainer.metrics.close()
        raise


def _say_whether_exact(run: Run, device: torch.device) -> None:
    """Find out, and say before the first frame, whether a resume of this run will be exact."""
    parts = run.trainer.parts
    parts.provenance = parts.provenance.with_reasons([*inexact_parts(parts.stateful), *inexact_device(device)])
    for reason in parts.provenance.inexact:
        log.warning("exact = false: %s", reason)
