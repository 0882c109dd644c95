"""The page about all tasks, as Markdown with a picture of the curves of each, and nothing but figures of the rows."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator, Sequence

from rlcore_plugin_reports import Estimate, picture

from rlcore_plugin_bench.bench_file import BenchFile
from rlcore_plugin_bench.figures import MethodFigures, TaskFigures
from rlcore_plugin_bench.stored_row import StoredRow
from rlcore_plugin_bench.texts import duration

_HOW_TO_READ = (
    "A score is the mean return of a run, as its task says. `IQM` is the interquartile mean over the seeds with "
    "the 95% interval of its bootstrap, and the bands of curves are those of the mean. Frames and seconds to "
    "a threshold are medians over the seeds with a curve. A row that is run again says its old score beside the new "
    "one; a row of a peer needs `--python NAME=PATH`."
)


def pictures(tasks: Sequence[TaskFigures]) -> dict[str, str]:
    """Return the pictures of the tasks that have curves, by file name."""
    drawn = {}
    for task in tasks:
        lines = task.lines()
        if lines:
            drawn[f"{task.name}.svg"] = picture(task.title, lines, _clock(task))
    return drawn


def page(files: Sequence[BenchFile], tasks: Sequence[TaskFigures], folder: str | None) -> str:
    """Return the page.

    Args:
        files: the bench files; the first gives the title.
        tasks: their figures.
        folder: of the pictures, relative to the page; None for a page without.
    """
    head = [f"# {files[0].bench.title}", *dict.fromkeys(file.bench.text for file in files if file.bench.text)]
    named = " ".join(file.path.as_posix() for file in files)
    blocks = [*head, f"{_HOW_TO_READ} `rlcore bench table {named}` makes this page of the rows that are stored."]
    told = [task for task in tasks if task.methods]
    if len(told) > 1:
        blocks += ["## All tasks", _overview(told)]
    for task in told:
        blocks += section(task, folder)
    return "\n\n".join([*blocks, *_made_with(tasks)]) + "\n"


def _overview(tasks: Sequence[TaskFigures]) -> str:
    """Return a table with a line for each task: mean and deviation of each method, and how many seeds."""
    heads = ["task", "mean ± std over seeds, and how many"]
    # stale methods have no seeds left; of published ones the number may be unknown
    rows = [
        [task.title, "; ".join(_brief(each) for each in task.methods if each.count != 0) or "stale"] for task in tasks
    ]
    return "\n".join(_line(cells) for cells in (heads, ["---"] * len(heads), *rows))


def _brief(method: MethodFigures) -> str:
    return f"{method.title}: {_mean(method)}" + ("" if method.count is None else f" ({method.count})")


def section(task: TaskFigures, folder: str | None) -> Iterator[str]:
    """Yield the blocks about a task, between marks by which other pages include it."""
    yield f"## {task.title}"
    yield f"<!-- begin {task.name} -->"
    about = task.file.task[task.name]
    if about.text:
        yield about.text
    yield _table(task, about.threshold)
    if folder is not None and task.lines():
        yield f"![curves of {task.title}]({folder}/{task.name}.svg)"
    notes = list(_notes(task))
    if notes:
        yield "\n".join(f"* {note}" for note in notes)
    yield f"<!-- end {task.name} -->"


def _table(task: TaskFigures, threshold: float | None) -> str:
    heads = ["method", "seeds", "results", "median", "mean ± std over seeds", "IQM [95%]"]
    with_threshold = threshold is not None and any(method.reached for method in task.methods)
    if with_threshold:
        heads += [f"{_clock(task)} to {threshold:,g}", f"seconds to {threshold:,g}"]
    rows = [[*_cells(method), *(_to_threshold(method) if with_threshold else [])] for method in task.methods]
    return "\n".join(_line(cells) for cells in (heads, ["---"] * len(heads), *rows))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(method: MethodFigures) -> list[str]:
    if method.count == 0:
        return [method.title, "", "stale", "", "", ""]
    seeds = ", ".join(str(row.seed) for row in method.rows) or f"{method.count or 'unknown'}, published"
    results = ", ".join(f"{score:,.1f}" for score in method.scores)
    median = f"{method.figures['median'].value:,.1f}" if method.figures else ""
    return [method.title, seeds, results, median, _mean(method), _estimate(method.figures.get("iqm"))]


def _mean(method: MethodFigures) -> str:
    # of one seed there is no deviation
    return f"{method.mean:,.1f}" + ("" if method.deviation is None else f" ± {method.deviation:,.1f}")


def _estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    interval = "" if estimate.low is None else f" [{estimate.low:,.1f}, {estimate.high:,.1f}]"
    return f"{estimate.value:,.1f}{interval}"


def _to_threshold(method: MethodFigures) -> list[str]:
    if not method.reached:
        return ["", ""]
    count = sum(each is not None for each in method.reached)
    part = "" if count == len(method.reached) else f" ({count} of {len(method.reached)})"
    frames, seconds = method.frames_to_threshold(), method.seconds_to_threshold()
    assert frames is not None
    told = "not reached" if math.isinf(frames) else f"{frames:,.0f}"
    took = "" if seconds is None or math.isinf(seconds) else f"{seconds:,.1f}"
    return [f"{told}{part}", took]


def _notes(task: TaskFigures) -> Iterator[str]:
    """Yield what a reader has to know of the rows of a task."""
    for method in task.methods:
        if method.source is not None:
            yield f"{method.title}: {method.source}"
        if method.stale:
            seeds = ", ".join(map(str, method.stale))
            yield f"{method.title}: left out, as their config changed since: seeds {seeds}"
    bare = {method.title: [row.seed for row in method.rows if not row.inputs] for method in task.methods}
    named = [f"{title} {', '.join(map(str, seeds))}" for title, seeds in bare.items() if seeds]
    if named:
        yield f"Scores alone, without curve and config: {'; '.join(named)}"
    if any(method.rows for method in task.methods):
        command = f"rlcore bench run {task.file.path.as_posix()} --rows '{task.name}/*' --repeat"
        yield f"Run again: `{command}`"


def _clock(task: TaskFigures) -> str:
    return next((row.clock for method in task.methods for row in method.rows), "frames")


def _made_with(tasks: Sequence[TaskFigures]) -> Iterator[str]:
    """Yield how the rows with a config were run: commands, versions, machines."""
    groups: dict[str, list[StoredRow]] = {}
    for task in tasks:
        for method in task.methods:
            for row in method.rows:
                if row.inputs:
                    groups.setdefault(_circumstances(row), []).append(row)
    if not groups:
        return
    yield "## How the rows were run"
    for text, rows in groups.items():
        commands = [f"# {row.task}, seed {row.seed}: {_took(row)}\n{shlex.join(row.command)}" for row in rows]
        yield text
        yield "\n".join(["```text", *commands, "```"])


def _circumstances(row: StoredRow) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in sorted(row.versions.items()))
    named = {"cpu": "unknown CPU", "cores": "unknown", "threads": "unknown", **row.machine}
    return f"{named['cpu']}, cores: {named['cores']}, threads: {named['threads']}; {versions}"


def _took(row: StoredRow) -> str:
    told = "" if row.frames is None else f"{row.frames:,} {row.clock}"
    seconds = "" if row.seconds is None else f"{duration(row.seconds)} of training"
    return " in ".join(part for part in (told, seconds) if part) or json.dumps(row.score)
