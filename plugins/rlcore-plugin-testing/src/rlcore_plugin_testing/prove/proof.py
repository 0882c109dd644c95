"""Put a config to the proof on this machine, and say what holds."""

from __future__ import annotations

import argparse
import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from rlcore.cli import Answer
from rlcore.errors import RlcoreError
from rlcore_plugin_testing.command import Proved, ProvedClaim
from rlcore_plugin_testing.faults.killer import Launcher
from rlcore_plugin_testing.prove import storage
from rlcore_plugin_testing.prove.ranks import RankRuns
from rlcore_plugin_testing.prove.runs import Runs
from rlcore_plugin_testing.prove.subject import ITERATIONS, QUICK_ITERATIONS, Subject, make_subject
from rlcore_plugin_testing.prove.table import Row, failed, table

KILLS, QUICK_KILLS = 20, 5
SAMPLE, QUICK_SAMPLE = 200, 40


def run(options: argparse.Namespace) -> Answer:
    """Prove; the exit code is 0 when all that is claimed holds."""
    scratch = Path(tempfile.mkdtemp(prefix="rlcore-prove-"))
    try:
        iterations = QUICK_ITERATIONS if options.quick else ITERATIONS
        changes = (options.set, options.enable, options.disable)
        subject = make_subject(Path(options.config), *changes, scratch, iterations, options.trust)
        kills = options.kills or (QUICK_KILLS if options.quick else KILLS)
        rows = prove(subject, kills, QUICK_SAMPLE if options.quick else SAMPLE)
    finally:
        if not options.keep:
            shutil.rmtree(scratch, ignore_errors=True)
    proved = Proved(
        options.config,
        subject.config.run.clock,
        subject.until,
        subject.between_checkpoints,
        [ProvedClaim(row.claim, row.verdict, row.figures) for row in rows],
        str(scratch) if options.keep else None,
    )
    head = f"{options.config}: {proved.until:,} {proved.clock}, a checkpoint every {proved.between_checkpoints:,}"
    kept = f"\nruns and recordings: {scratch}\n" if options.keep else ""
    return Answer(proved, f"{head}\n\n{table(rows)}\n{kept}", 5 if failed(rows) else 0)


@contextmanager
def _only_errors() -> Iterator[None]:
    """Keep quiet about what is damaged on purpose; the table reports it."""
    logger = logging.getLogger()
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def prove(subject: Subject, kills: int, sample: int) -> list[Row]:
    """Return a row for each claim.

    Args:
        subject: what is put to the proof.
        kills: how often it is killed.
        sample: bits to flip in each file, and states of the disk after a power cut.

    Raises:
        RlcoreError: the run cannot be trained at all.
    """
    scratch = subject.scratch
    with (
        _only_errors(),
        tqdm(total=kills + 8, desc="prove", unit="step") as bar,
        Launcher(Path.cwd(), scratch / "output") as launcher,
    ):

        def step(what: str) -> None:
            bar.set_postfix_str(what, refresh=False)
            bar.update()

        learnt = launcher.learn(["train", str(subject.job("dry").config), "--dry-run", *subject.options])
        if learnt.wait(0):
            raise RlcoreError(f"the run cannot be built in a process of its own; it printed:\n{learnt.text()}")
        step("imports")
        several = subject.config.ranks is not None
        runs = (RankRuns if several else Runs)(subject, launcher, step)
        checkpoints = runs.reference.folder / "checkpoints"
        rows = [runs.environment(), runs.again(), runs.killed(kills), *([] if several else [runs.stopped()])]
        rows += [
            storage.damage(subject.run, checkpoints, scratch, sample, lambda what: None),
            storage.power_cuts(subject.run, checkpoints, scratch, sample, step),
            storage.opening(runs.reference.config, checkpoints, step),
            runs.saving(),
        ]
        bar.update(max(0, bar.total - bar.n))
    return rows
