"""One HTML page about one or several runs, with nothing outside of it: curves, evaluations, videos, config, faults.

It is made from the files of the run folders; torch is not needed.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

import numpy as np
import tomli_w

from rlcore.checkpoints.manifest import best, scan
from rlcore.errors import ConfigError, StorageError
from rlcore.files.plain_files import plain_files_below, read_plain
from rlcore.reports.colours import COLOURS
from rlcore.reports.curves import PANELS, mean_and_spread
from rlcore.reports.run_files import RunFiles, experiments
from rlcore.reports.svg import Line, chart
from rlcore.run_folder.folder import CHECKPOINTS, CONFIG_FILE

EMBEDDED_BYTES: Final = 32 * 2**20
_MEDIA: Final = {".gif": "image/gif", ".png": "image/png", ".mp4": "video/mp4", ".webm": "video/webm"}
_MEDIA_PER_RUN: Final = 6
_STATISTICS: Final = ("/std", "/min", "/max", "/count")
_YES_NO: Final = {"True": "yes", "False": "no"}
_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; border-bottom: 1px solid var(--line); }
table { border-collapse: collapse; } th, td { text-align: left; padding: .2rem .9rem .2rem 0; vertical-align: top; }
th { font-weight: 600; border-bottom: 1px solid var(--line); } td.number { text-align: right; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(420px, 1fr)); gap: .8rem; }
svg { width: 100%; height: auto; font-size: 11px; fill: currentColor; }
svg .title { font-size: 13px; font-weight: 600; }
svg .grid { stroke: var(--line); } .media { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { margin: 0; width: 240px; overflow-wrap: anywhere; font-size: 13px; } figure img, figure video { width: 100%; }
pre { background: var(--soft); padding: .8rem; overflow-x: auto; font-size: 13px; } .wide { overflow-x: auto; }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .4em; border-radius: 2px; }
"""


def write_report(folders: Sequence[Path], output: Path) -> Path:
    """Write the page. Runs whose configs differ in name, folder and seed alone are one line with its spread.

    Args:
        folders: run folders.
        output: the HTML file.

    Raises:
        ConfigError: a folder is none of a run, or the page cannot be written.
    """
    for folder in folders:
        if not (folder / CONFIG_FILE).is_file():
            raise ConfigError(f"{str(folder)!r} is not a run folder: it has no {CONFIG_FILE}")
    runs = [RunFiles(folder) for folder in folders]
    try:
        output.write_text(page(runs), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{str(output)!r} cannot be written: {error}") from error
    return output


def page(runs: Sequence[RunFiles]) -> str:
    """Return the page as HTML."""
    groups = experiments(runs)
    name = runs[0].folder.resolve().name if len(runs) == 1 else f"{len(runs)} runs"
    sections = [
        ("Runs", _run_table(groups)),
        ("Curves", _charts(groups, [key for key, _ in PANELS], dict(PANELS))),
        ("Evaluations", _evaluation_table(groups)),
        ("Images and videos", _media(runs)),
        ("Faults seen", _fault_table(runs)),
        ("Further metrics", _further(groups)),
        ("Config", _configs(groups)),
        ("Versions", _version_table(runs)),
    ]
    body = "\n".join(f"<section>\n<h2>{title}</h2>\n{content}\n</section>" for title, content in sections if content)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(name)}</title>\n'
        f'<meta name="viewport" content="width=device-width">\n<style>{_STYLE}</style>\n</head>\n<body>\n'
        f"<h1>{escape(name)}</h1>\n{body}\n</body>\n</html>\n"
    )


def _run_table(groups: Mapping[str, list[RunFiles]]) -> str:
    rows = []
    for number, (name, group) in enumerate(groups.items()):
        mark = f'<span class="key" style="background:{COLOURS[number % len(COLOURS)]}" title="{escape(name)}"></span>'
        for run in group:
            entries = scan(run.folder / CHECKPOINTS).entries
            best_entry, reached = best(entries), max((entry.frames for entry in entries), default=0)
            rows.append(
                [
                    mark + escape(run.folder.resolve().name),
                    escape(str(run.status.get("state", "unknown"))),
                    f"{run.status.get('frames', reached):,} of {run.total_frames:,}",
                    escape(str(run.section("run").get("seed", ""))),
                    escape(run.used("env")),
                    escape(run.used("loss")),
                    "" if best_entry is None else f"{best_entry.evaluation:,.1f}",
                    _YES_NO.get(repr(run.status.get("exact")), ""),
                ]
            )
    return _table(["run", "state", "frames", "seed", "env", "loss", "best checkpoint", "exact"], rows)


def _charts(groups: Mapping[str, list[RunFiles]], keys: Sequence[str], titles: Mapping[str, str]) -> str:
    drawn = []
    for key in keys:
        lines = []
        for name, group in groups.items():
            curves = [run.metrics[key] for run in group if run.metrics.get(key)]
            if curves:
                label = name if len(group) == 1 else f"{name} and {len(curves) - 1} more: mean, lowest to highest"
                lines.append(Line(label, *mean_and_spread(curves)))
        drawn.append(f"<div>{chart(titles.get(key, key), lines)}</div>")
    return f'<div class="charts">{"".join(drawn)}</div>'


def _further(groups: Mapping[str, list[RunFiles]]) -> str:
    """Every metric that has no place of its own, folded up."""
    all_keys = {key for group in groups.values() for run in group for key in run.metrics}
    keys = sorted(key for key in all_keys - {key for key, _ in PANELS} if not key.endswith(_STATISTICS))
    if not keys:
        return ""
    return f"<details><summary>{len(keys)} metrics</summary>{_charts(groups, keys, {})}</details>"


def _evaluation_table(groups: Mapping[str, list[RunFiles]]) -> str:
    """Mean return and length of every evaluation, over the runs of an experiment."""
    rows = []
    for name, group in groups.items():
        curves = [run.metrics.get("evaluation/return", {}) for run in group]
        lengths = [run.metrics.get("evaluation/length", {}) for run in group]
        for frames in sorted({frames for curve in curves for frames in curve}):
            returns = np.array([curve[frames] for curve in curves if frames in curve])
            steps = np.array([curve[frames] for curve in lengths if frames in curve])
            spread = f"{returns.std():,.1f}" if returns.size > 1 else ""
            rows.append(
                [
                    escape(name),
                    f"{frames:,}",
                    f"{returns.mean():,.1f}",
                    spread,
                    f"{returns.min():,.1f} to {returns.max():,.1f}",
                    f"{steps.mean():,.0f}" if steps.size else "",
                    str(returns.size),
                ]
            )
    header = [
        "experiment",
        "frames",
        "mean return",
        "standard deviation over runs",
        "runs from to",
        "mean length",
        "runs",
    ]
    return _table(header, rows, numbers=(1, 2, 3, 5, 6))


def _media(runs: Sequence[RunFiles]) -> str:
    """The latest images and videos of each run, inside the page while there is room."""
    figures, room = [], EMBEDDED_BYTES
    for run in runs:
        for file in _newest_media(run.folder):
            size = file.stat().st_size
            try:
                content = read_plain(file, room)
            except (OSError, StorageError):
                figures.append(f"<p>{escape(str(file))}: left out, {size:,} bytes</p>")
                continue
            room -= len(content)
            source = f"data:{_MEDIA[file.suffix]};base64,{base64.b64encode(content).decode()}"
            caption = escape(f"{run.folder.resolve().name}: {file.relative_to(run.folder)}")
            shown = (
                f'<video src="{source}" controls loop muted></video>'
                if _MEDIA[file.suffix].startswith("video")
                else f'<img src="{source}" alt="{caption}">'
            )
            figures.append(f"<figure>{shown}<figcaption>{caption}</figcaption></figure>")
    return f'<div class="media">{"".join(figures)}</div>' if figures else ""


def _newest_media(folder: Path) -> list[Path]:
    files = [
        file for name in ("videos", "images") for file in plain_files_below(folder / name) if file.suffix in _MEDIA
    ]
    return sorted(files, key=lambda file: (file.name, str(file)), reverse=True)[:_MEDIA_PER_RUN]


def _fault_table(runs: Sequence[RunFiles]) -> str:
    rows = [[escape(run.folder.resolve().name), escape(cause)] for run in runs for cause in _faults(run)]
    return _table(["run", "what"], rows) if rows else "<p>None.</p>"


def _faults(run: RunFiles) -> Iterator[str]:
    if run.status.get("state") in ("failed", "failed-resumable", "stopped-resumable"):
        yield f"{run.status['state']}: {run.status.get('reason', '')}"
    for cause, count in run.status.get("losses", {}).items():
        yield f"{count:,} {cause}"
    if (run.folder / "stacks.txt").is_file():
        yield "nothing moved for a while; the stacks of all threads are in stacks.txt"
    for entry in scan(run.folder / "faults").entries:
        yield f"a batch that was not finite at frame {entry.frames:,}, in faults/{entry.path.name}"


def _configs(groups: Mapping[str, list[RunFiles]]) -> str:
    parts = []
    for name, group in groups.items():
        config = {section: value for section, value in group[0].config.items() if section != "versions"}
        opened = " open" if len(groups) == 1 else ""
        parts.append(
            f"<details{opened}><summary>{escape(name)}</summary><pre>{escape(tomli_w.dumps(config))}</pre></details>"
        )
    return "\n".join(parts)


def _version_table(runs: Sequence[RunFiles]) -> str:
    versions_of: dict[str, set[str]] = {}
    for run in runs:
        for name, version in run.section("versions").items():
            versions_of.setdefault(name, set()).add(str(version))
    return _table(
        ["distribution", "version"], [[escape(n), escape(", ".join(sorted(v)))] for n, v in versions_of.items()]
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return a table of cells that are HTML already; `numbers` are the columns to align on the right."""
    if not rows:
        return ""
    kinds = [' class="number"' if place in numbers else "" for place in range(len(header))]
    head = "".join(f"<th>{escape(text)}</th>" for text in header)
    lines = ["".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, row, strict=True)) for row in rows]
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="wide"><table>\n<tr>{head}</tr>\n{body}\n</table></div>'
