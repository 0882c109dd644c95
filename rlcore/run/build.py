"""From a config to a ready trainer: the order of building, seeds, device, run folder, resume.

What is built is in the components; what happens then is in the room `training/`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from rlcore.config.sections import Config
from rlcore.errors import ConfigError
from rlcore.files.lock import Lock
from rlcore.restore.choices import ResumeOptions
from rlcore.run import resume as resuming
from rlcore.run.builder import Builder
from rlcore.run.ready import Run
from rlcore.run_folder import folder as run_folder
from rlcore.run_folder import run_id as run_ids
from rlcore.state.exactness import inexact_device, inexact_parts
from rlcore.state.generators import seed_all
from rlcore.types import RunInfo
from rlcore.types.context import Context
from rlcore.types.heart import Heart
from rlcore.types.progress import Progress

log = logging.getLogger(__name__)


def choose_device(name: str) -> torch.device:
    """Return the device that `[run] device` names.

    Raises:
        ConfigError: there is no such device here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda":
        count = torch.cuda.device_count()
        if (device.index or 0) >= count:
            raise ConfigError(f"[run] device = {name!r}: torch sees {count} CUDA devices; use 'auto' or 'cpu'")
    return device


def build(
    config: Config,
    *,
    write: bool = True,
    resume: bool | ResumeOptions = False,
    hooks: Iterable[Any] = (),
    heart: Heart | None = None,
    place: Path | None = None,
) -> Run:
    """Build everything that the config names, in order, and restore the latest checkpoint when resuming.

    Args:
        config: validated.
        write: whether to make the run folder and write into it.
        resume: continue the run in that folder, perhaps with options.
        hooks: further hook instances, after those of the config.
        heart: counts what moves, for a watchdog.
        place: the run folder; default: the one that `[run]` names.

    Raises:
        RlcoreError: something cannot be built; says what and whose it is.
    """
    named = (place or config.run.place) if write else None
    resolved, device = config.resolved(), choose_device(config.run.device)
    _prepare_folder(named, bool(resume))
    lock = Lock(named) if named is not None else None
    # an env may change the working directory, and nothing of the run may follow it
    folder = named.absolute() if named is not None else None
    options = resume if isinstance(resume, ResumeOptions) else ResumeOptions()
    try:
        if resume and folder is not None and not options.accept_changes:
            resuming.check_unchanged_since_latest(config, folder)
        torch.set_num_threads(config.run.threads)
        _set_determinism(config.run.deterministic)
        seed_all(config.run.seed)
        context = Context(
            run=RunInfo(config.run.name, config.run.seed, config.run.total_frames, folder, resolved),
            device=device,
            progress=Progress(config.run.total_frames),
            heart=heart or Heart(),
        )
        log.info("device %s, CPU threads: %d", context.device, config.run.threads)
        builder = Builder(config, context)
        run = Run(builder.trainer(hooks), config, named, [], builder.backend)
        if folder is not None:
            _begin(run, folder, resolved, options if resume else None)
    except BaseException:
        if lock is not None:
            lock.release()
        _remove_unused(folder, bool(resume))
        raise
    if lock is not None:
        run.trainer.parts.release = lock.release
    return run


def _begin(run: Run, folder: Path, resolved: dict[str, Any], resume: ResumeOptions | None) -> None:
    """Say whether the run is exact, restore what is to be resumed, and write id and config."""
    parts = run.trainer.parts
    try:
        _say_whether_exact(run)
        run_id = (run_ids.read_id(folder) if resume is not None else "") or run_ids.new_id()
        parts.provenance = replace(parts.provenance, run_id=run_id)
        if resume is None:
            run_ids.write_id(folder, run_id)
            run_folder.write_config(folder, resolved)
        else:
            run.report = resuming.go_on(run, folder, resume)
        for writer in run.trainer.metrics.writers:
            writer.start()
            writer.log_hparams(resolved)
    except BaseException:
        run.trainer.metrics.close()
        raise


def _set_determinism(deterministic: bool) -> None:
    """Let torch refuse kernels that do not repeat; cuBLAS repeats only with a workspace of fixed size."""
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)


def _prepare_folder(folder: Path | None, resume: bool) -> None:
    if folder is None:
        return
    if not resume:
        run_folder.make(folder)
    elif not folder.is_dir():
        raise ConfigError(f"--resume: run folder {str(folder)!r} does not exist; leave --resume out to begin the run")


def _remove_unused(folder: Path | None, resume: bool) -> None:
    """Leave no empty folder behind when a new run could not be built."""
    if folder is not None and not resume:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def _say_whether_exact(run: Run) -> None:
    """Find out, and say before the first frame, whether a resume of this run will be exact."""
    parts, device = run.trainer.parts, choose_device(run.config.run.device)
    parts.provenance = parts.provenance.with_reasons([*inexact_parts(parts.stateful), *inexact_device(device)])
    for reason in parts.provenance.inexact:
        log.warning("exact = false: %s", reason)
