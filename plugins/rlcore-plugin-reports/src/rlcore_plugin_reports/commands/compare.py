"""`rlcore compare`: several runs, grouped by setting, in a table and a picture."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from rlcore.cli import Answer, add_json, positive
from rlcore.errors import ConfigError
from rlcore_plugin_reports.commands.arguments import finite
from rlcore_plugin_reports.commands.compare_answer import Compared, compared
from rlcore_plugin_reports.comparison import Comparison, compare
from rlcore_plugin_reports.comparison_plot import plot_comparison
from rlcore_plugin_reports.comparison_table import FORMATS
from rlcore_plugin_reports.terminal import printable

_SUFFIXES: Final = {".md": "markdown", ".csv": "csv", ".tex": "latex"}
_PICTURES: Final = (".png", ".svg", ".pdf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore compare`."""
    parser.description = (
        "Compare settings over their seeds: mean, interquartile mean (IQM), 95% intervals, probability of improvement."
    )
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="run folders; those that differ in the seed are one setting"
    )
    parser.add_argument(
        "--threshold",
        type=finite,
        metavar="R",
        help="say after how many frames R is reached, and the optimality gap to it",
    )
    parser.add_argument(
        "--metric", default="evaluation/return", metavar="KEY", help="higher is better; default: evaluation/return"
    )
    parser.add_argument(
        "--at", type=positive, metavar="FRAME", help="compare at that frame; default: the last that every run reached"
    )
    parser.add_argument(
        "--output",
        metavar="DIR|FILE",
        help="write a table (.md, .csv, .tex) or picture (.png, .svg, .pdf); all into DIR",
    )
    parser.add_argument("--format", choices=("markdown", "csv", "latex"), help="of the table; default: markdown")
    add_json(parser, Compared)


def run(options: argparse.Namespace) -> Answer:
    """Compare; write the table and the picture where they are wanted."""
    output = None if options.output is None else Path(options.output)
    if output is not None:
        _check(output, options.format)
    comparison = compare([Path(name) for name in options.runs], options.metric, options.at, options.threshold)
    if output is None:
        return Answer(compared(comparison, ()), shown(comparison, options.format or "markdown"))
    files = [_write(comparison, file) for file in _files(output, options.format)]
    return Answer(compared(comparison, files), "".join(f"{file}\n" for file in files))


def shown(comparison: Comparison, form: str = "markdown") -> str:
    """Return the table for a terminal: names of runs and settings may hold anything."""
    return "".join(printable(line) + "\n" for line in FORMATS[form](comparison).splitlines())


def _check(output: Path, form: str | None) -> None:
    """See that it is clear what to write.

    Raises:
        ConfigError: the file has no known ending, or one that is not of the format.
    """
    if output.is_dir() or not output.suffix:
        return
    endings = (*_SUFFIXES, *_PICTURES)
    if output.suffix not in endings:
        raise ConfigError(f"--output {output}: a file ends in one of {', '.join(endings)}; a folder gets all formats")
    if form is not None and _SUFFIXES.get(output.suffix) != form:
        raise ConfigError(f"--output {output} does not end as --format {form} does; leave --format out")


def _files(output: Path, form: str | None) -> list[Path]:
    """Return the files to write: one, or into a folder the picture and the tables."""
    if output.suffix and not output.is_dir():
        return [output]
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--output {output} cannot be made: {error}") from error
    tables = [output / f"compare{suffix}" for suffix, name in _SUFFIXES.items() if form in (None, name)]
    return [*tables, output / "compare.png"]


def _write(comparison: Comparison, file: Path) -> Path:
    if file.suffix in _PICTURES:
        return plot_comparison(comparison, file)
    try:
        file.write_text(FORMATS[_SUFFIXES[file.suffix]](comparison), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{str(file)!r} cannot be written: {error}") from error
    return file
