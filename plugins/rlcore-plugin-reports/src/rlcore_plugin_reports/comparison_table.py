"""A comparison as text: Markdown to read, CSV to compute with, LaTeX for a paper."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final

from rlcore_plugin_reports.comparison import Comparison, Setting
from rlcore_plugin_reports.statistics import Estimate

_NOTHING: Final = "-"
_TITLES: Final = {
    "mean": "mean",
    "median": "median",
    "iqm": "IQM",
    "area": "mean over frames",
    "optimality_gap": "gap",
}
_LATEX: Final = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "±": r"$\pm$",
    }
)


def as_markdown(comparison: Comparison) -> str:
    """Return the tables and the notes as Markdown."""
    header, *rows = _cells(comparison)
    parts = [_headline(comparison), _aligned(header, [[_plain(cell) for cell in row] for row in rows])]
    if comparison.improvements:
        parts.append(
            _aligned(
                ["probability of improvement", "P(higher score)"],
                [[_plain(f"{a} over {b}"), _interval(each)] for (a, b), each in comparison.improvements.items()],
            )
        )
    parts.append("\n".join(f"- {note}" for note in [*_legend(comparison), *comparison.notes]))
    return "\n\n".join(parts) + "\n"


def as_csv(comparison: Comparison) -> str:
    """Return one row per figure: `setting,against,figure,value,low,high,runs,metric,frame`.

    A cell is empty where there is nothing: no interval of a single run, no frames to a threshold that half of the runs
    never reached.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["setting", "against", "figure", "value", "low", "high", "runs", "metric", comparison.unit])
    runs = {setting.name: len(setting.runs) for setting in comparison.settings}
    for name, against, figure, each in _figures(comparison):
        ends = ["" if end is None else repr(end) for end in (each.low, each.high)]
        value = "" if math.isnan(each.value) else repr(each.value)
        writer.writerow([name, against, figure, value, *ends, runs[name], comparison.metric, comparison.frame])
    return stream.getvalue()


def as_latex(comparison: Comparison) -> str:
    """Return a `table` of the package booktabs with a row for each setting."""
    header, *rows = _cells(comparison)
    lines = [" & ".join(cell.translate(_LATEX) for cell in row) + r" \\" for row in rows]
    titles = " & ".join(cell.translate(_LATEX) for cell in header) + r" \\"
    caption = " ".join([_headline(comparison), *_legend(comparison), *comparison.notes]).translate(_LATEX)
    return "\n".join(
        [
            "% needs \\usepackage{booktabs}",
            r"\begin{table}",
            r"  \centering",
            f"  \\caption{{{caption}}}",
            f"  \\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
            r"    \toprule",
            f"    {titles}",
            r"    \midrule",
            *(f"    {line}" for line in lines),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


FORMATS: Final[dict[str, Callable[[Comparison], str]]] = {
    "markdown": as_markdown,
    "csv": as_csv,
    "latex": as_latex,
}


def _headline(comparison: Comparison) -> str:
    env = comparison.settings[0].runs[0].used("env")
    return f"{comparison.metric} at {comparison.unit} {comparison.frame:,}, {env}"


def _legend(comparison: Comparison) -> Iterator[str]:
    if any(len(setting.runs) > 1 for setting in comparison.settings):
        yield (
            "In brackets: 95% intervals of the stratified bootstrap over runs (Agarwal et al. 2021). IQM: "
            "interquartile mean."
        )
    if comparison.threshold is not None:
        yield (
            f"{comparison.clock.capitalize()} to {comparison.threshold:g}: median over runs of the first record that "
            "is there. Gap: how far runs stay below it on average."
        )


def _cells(comparison: Comparison) -> Iterator[list[str]]:
    """Yield the titles, then the cells of each setting."""
    names = [name for name in _TITLES if name in comparison.settings[0].figures]
    frames = [] if comparison.threshold is None else [f"{comparison.clock} to {comparison.threshold:g}"]
    titles = {name: title.replace("frames", comparison.clock) for name, title in _TITLES.items()}
    mean, *others = names
    yield ["setting", "seeds", titles[mean], "standard deviation", *(titles[name] for name in others), *frames]
    for setting in comparison.settings:
        yield [
            setting.name,
            str(len(setting.runs)),
            _interval(setting.figures[mean]),
            _NOTHING if setting.deviation is None else _number(setting.deviation),
            *(_interval(setting.figures[name]) for name in others),
            *([_reached(setting)] if frames else []),
        ]


def _figures(comparison: Comparison) -> Iterator[tuple[str, str, str, Estimate]]:
    """Yield setting, the other one where there are two, name of the figure, and the figure."""
    for setting in comparison.settings:
        for figure, each in setting.figures.items():
            yield setting.name, "", figure, each
        yield setting.name, "", "standard_deviation", Estimate(_or_nan(setting.deviation))
        if comparison.threshold is not None:
            yield setting.name, "", f"{comparison.clock}_to_threshold", Estimate(_or_nan(_median_frames(setting)))
            reached = sum(frame is not None for frame in setting.reached)
            yield setting.name, "", "runs_at_threshold", Estimate(float(reached))
    for (name, other), each in comparison.improvements.items():
        yield name, other, "probability_of_improvement", each


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _median_frames(setting: Setting) -> float | None:
    """Return the median of the frames to the threshold; None where half of the runs or more never reached it."""
    value = median(math.inf if frame is None else frame for frame in setting.reached)
    return value if math.isfinite(value) else None


def _reached(setting: Setting) -> str:
    frames, count = _median_frames(setting), sum(frame is not None for frame in setting.reached)
    if not count:
        return "never reached"
    runs = "" if count == len(setting.runs) else f" ({count} of {len(setting.runs)} runs reached it)"
    return ("not by half" if frames is None else f"{frames:,.0f}") + runs


def _interval(each: Estimate) -> str:
    return _number(each.value) + ("" if each.low is None else f" [{_number(each.low)}, {_number(each.high)}]")


def _number(value: float | None) -> str:
    """Return a number with as many places as tell something."""
    if value is None:
        return _NOTHING
    size = abs(value)
    return f"{value:,.0f}" if size >= 10_000 else f"{value:,.1f}" if size >= 100 else f"{value:#.3g}"


def _plain(text: str) -> str:
    """Return text that cannot end a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def _aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of Markdown whose columns are aligned in plain text too; all but the first to the right."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = "|".join(
        f"{'-' * (width + 2)}" if column == 0 else f"{'-' * (width + 1)}:" for column, width in enumerate(widths)
    )
    return "\n".join([line(header), f"|{rule}|", *map(line, rows)])
