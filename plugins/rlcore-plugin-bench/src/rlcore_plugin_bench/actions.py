"""What the actions of `rlcore bench` do."""

from __future__ import annotations

import argparse
import logging
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from rlcore.cli import Answer
from rlcore.errors import ConfigError
from rlcore.process import collected_stops, usable_cores
from rlcore_plugin_bench import peer_row
from rlcore_plugin_bench.answers import BenchTable, Ran, Rows
from rlcore_plugin_bench.bench_file import BenchFile, read_bench
from rlcore_plugin_bench.listing import listed, listed_rows
from rlcore_plugin_bench.queue import Again, Outcome, Queue
from rlcore_plugin_bench.row import Row, rows_of
from rlcore_plugin_bench.states import states_of, wall_seconds

log = logging.getLogger(__name__)


def run(options: argparse.Namespace) -> Answer:
    """Do what was asked for."""
    files = [read_bench(Path(name)) for name in options.files]
    if options.action == "table":
        return write_table(files, options)
    rows = chosen([row for file in files for row in rows_of(file)], options.rows)
    pythons = interpreters(options.python)
    return run_rows(rows, pythons, options) if options.action == "run" else list_rows(rows, pythons)


def chosen(rows: Sequence[Row], patterns: Sequence[str] | None) -> list[Row]:
    """Return the rows that fit any of the patterns.

    Raises:
        ConfigError: a pattern fits none.
    """
    for pattern in patterns or ():
        if not any(fnmatchcase(str(row), pattern) for row in rows):
            example = f", such as {rows[0]}" if rows else ""
            raise ConfigError(f"--rows {pattern!r} fits no row; a row is TASK/METHOD/SEED{example}")
    return [row for row in rows if patterns is None or any(fnmatchcase(str(row), pattern) for pattern in patterns)]


def interpreters(texts: Sequence[str]) -> dict[str, str]:
    """Return the interpreters of peers by name.

    Raises:
        ConfigError: a text is not NAME=PATH, or there is no such file.
    """
    pythons: dict[str, str] = {}
    for text in texts:
        name, _, path = text.partition("=")
        if not name or not Path(path).is_file():
            raise ConfigError(f"--python {text!r} is not NAME=PATH with the path of an interpreter")
        pythons[name] = path
    return pythons


def list_rows(rows: Sequence[Row], pythons: dict[str, str]) -> Answer:
    """Answer with the states of rows."""
    states = states_of(rows, pythons)
    return Answer(Rows(listed_rows(states)), f"{listed(states)}\n")


def run_rows(rows: Sequence[Row], pythons: dict[str, str], options: argparse.Namespace) -> Answer:
    """Check every row, run those that are not done, and say what became of them."""
    states = states_of(rows, pythons)
    skipped = ("done",) if options.stale else ("done", "stale")
    asked = [state.row for state in states if options.repeat or state.state not in skipped]
    wanted = [row for row in asked if peer_row.interpreter(row, pythons) is not None]
    for name in sorted({row.how.python for row in asked} - {row.how.python for row in wanted}):
        log.info("peers of %s are left out: name their interpreter with --python %s=PATH", name, name)
    stale = [str(state.row) for state in states if state.state == "stale"]
    if stale and not (options.stale or options.repeat):
        log.info("%d rows are stale, and are not run again without --stale: %s", len(stale), ", ".join(stale))
    again: Again = "all" if options.repeat else "stale" if options.stale else "none"
    with collected_stops() as stops:
        queue = Queue(
            wanted,
            pythons,
            options.jobs or usable_cores(),
            stops,
            options.max_time,
            again,
            options.discard,
            wall_seconds(rows),
        )
        outcome = queue.run()
        command = again_with(options) if stops else None
        report(outcome, command)
        ran = Ran(outcome.done, outcome.failed, outcome.late, outcome.elsewhere, command)
        return Answer(ran, code=128 + stops[0] if stops else 1 if outcome.failed else 0)


def again_with(options: argparse.Namespace) -> str:
    """Return the command that goes on with a queue that was stopped."""
    rows = [part for pattern in options.rows or () for part in ("--rows", pattern)]
    pythons = [part for text in options.python for part in ("--python", text)]
    flags = [f"--{name}" for name in ("stale", "repeat", "discard") if getattr(options, name)]
    jobs = [] if options.jobs is None else ["--jobs", str(options.jobs)]
    return shlex.join(["rlcore", "bench", "run", *options.files, *rows, *pythons, *jobs, *flags])


def report(outcome: Outcome, command: str | None) -> None:
    """Say how many rows are done, failed, late or elsewhere, and which command goes on where the queue was stopped."""
    counts = {
        "done": len(outcome.done),
        "failed": len(outcome.failed),
        "not in time": len(outcome.late),
        "in another queue": len(outcome.elsewhere),
    }
    ended = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    if ended or command is None:
        log.info("%s", ended or "nothing was to be run")
    for name, why in outcome.failed.items():
        log.info("failed: %s: %s", name, why)
    if command is not None:
        log.info("stopped; go on with: %s", command)


def write_table(files: Sequence[BenchFile], options: argparse.Namespace) -> Answer:
    """Write the page, or answer with it."""
    from rlcore_plugin_bench.figures import figures_of
    from rlcore_plugin_bench.page import page, pictures

    tasks = figures_of(files)
    table = BenchTable([task.as_json() for task in tasks], options.output)
    if options.output is None:
        return Answer(table, page(files, tasks, None))
    output = Path(options.output)
    if output.suffix != ".md":
        raise ConfigError(f"--output {output}: the page is Markdown; give it a name that ends in .md")
    try:
        folder = output.with_suffix("")
        drawn = pictures(tasks)
        if drawn:
            folder.mkdir(parents=True, exist_ok=True)
        for name, text in drawn.items():
            (folder / name).write_text(text, encoding="utf-8")
        output.write_text(page(files, tasks, folder.name), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--output {output} cannot be written: {error}") from error
    return Answer(table, f"{output}\n")
