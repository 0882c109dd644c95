"""A chart as SVG text: lines with a band around each, axes with round numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np

from rlcore_plugin_reports.colours import COLOURS

if TYPE_CHECKING:
    from rlcore.types import Array

_WIDTH, _HEIGHT = 460, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 18, 28, 36
# of a character of the title, about
_CHARACTER: Final = 7
# of a name below the picture
_LEGEND: Final = 16
_STYLE: Final = "text{font:11px sans-serif;fill:#1b1f24}.title{font-weight:600}.grid{stroke:#dcdfe4}"
# of the distance of two ticks: how far a line may leave them, since a run of 100,000 frames ends with the batch after
_SLACK: Final = 0.02
# of a line: more than the pixels that it crosses
_POINTS: Final = 500


@dataclass(frozen=True)
class Line:
    """One line of a chart; arrays are `[point]`, float.

    Attributes:
        name: shown when the mouse rests on it.
        x: increasing.
        y: the line.
        low: lower edge of the band.
        high: upper edge.
    """

    name: str
    x: Array
    y: Array
    low: Array
    high: Array


def chart(title: str, lines: Sequence[Line], x_label: str = "frames") -> str:
    """Return a chart; points that are not finite are left out, and beyond 500 points a line is thinned."""
    lines = [line for line in map(_drawable, lines) if line.x.size]
    body = [_heading(title)]
    if not lines:
        body.append(f'<text x="{_WIDTH // 2}" y="{_HEIGHT // 2}" text-anchor="middle">nothing recorded</text>')
        return _svg(title, body)
    across = _ticks(min(line.x[0] for line in lines), max(line.x[-1] for line in lines))
    up = _ticks(min(line.low.min() for line in lines), max(line.high.max() for line in lines))
    body += _axes(across, up, x_label)
    for number, line in enumerate(lines):
        body += _drawn(line, across, up, COLOURS[number % len(COLOURS)])
    return _svg(title, body)


def picture(title: str, lines: Sequence[Line], x_label: str = "frames") -> str:
    """Return a chart as a file of its own, with the names of its lines below it, on white."""
    lines = [line for line in lines if _drawable(line).x.size]
    body = chart(title, lines, x_label).partition("\n")[2].removesuffix("</svg>")
    for number, line in enumerate(lines):
        y = _HEIGHT + _LEGEND * number + _LEGEND // 2
        colour = COLOURS[number % len(COLOURS)]
        body += f'<line x1="{_LEFT}" x2="{_LEFT + 18}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="3"/>\n'
        body += f'<text x="{_LEFT + 24}" y="{y + 4}">{escape(line.name)}</text>\n'
    height = _HEIGHT + _LEGEND * len(lines) + 6
    size = f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title, quote=True)}">'
    return f"{head}\n<style>{_STYLE}</style>\n<rect width='100%' height='100%' fill='#ffffff'/>\n{body}</svg>\n"


def _heading(title: str) -> str:
    """Return the title, narrower where it would leave the chart."""
    room = _WIDTH - _LEFT - _RIGHT
    fit = f' textLength="{room}" lengthAdjust="spacingAndGlyphs"' if len(title) * _CHARACTER > room else ""
    return f'<text class="title" x="{_LEFT}" y="16"{fit}>{escape(title)}</text>'


def _drawable(line: Line) -> Line:
    finite = np.isfinite(line.x) & np.isfinite(line.y) & np.isfinite(line.low) & np.isfinite(line.high)
    kept = np.flatnonzero(finite)
    if kept.size > _POINTS:
        kept = kept[np.linspace(0, kept.size - 1, _POINTS).round().astype(int)]
    return Line(line.name, *(values[kept] for values in (line.x, line.y, line.low, line.high)))


def _ticks(low: float, high: float) -> list[float]:
    """Return some round numbers that span the range, but for a little."""
    if high / 2 - low / 2 <= 1e-12 * max(abs(low), abs(high), 1e-300):
        low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
    raw = high / 5 - low / 5
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= raw * (1 - _SLACK))
    first, last = math.floor(low / step + _SLACK), math.ceil(high / step - _SLACK)
    return [number * step for number in range(first, last + 1)]


def _axes(across: list[float], up: list[float], x_label: str) -> list[str]:
    body = []
    for value in up:
        y = _place(value, up, _HEIGHT - _BOTTOM, _TOP)
        body.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        body.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_number(value)}</text>')
    for value in across:
        x = _place(value, across, _LEFT, _WIDTH - _RIGHT)
        body.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 15}" text-anchor="middle">{_number(value)}</text>')
    body.append(f'<text x="{(_LEFT + _WIDTH) // 2}" y="{_HEIGHT - 4}" text-anchor="middle">{escape(x_label)}</text>')
    return body


def _drawn(line: Line, across: list[float], up: list[float], colour: str) -> list[str]:
    x = [_place(value, across, _LEFT, _WIDTH - _RIGHT) for value in line.x]
    edges = [
        [_place(value, up, _HEIGHT - _BOTTOM, _TOP) for value in values] for values in (line.y, line.low, line.high)
    ]
    middle, low, high = (list(zip(x, edge, strict=True)) for edge in edges)
    body = []
    if not np.array_equal(line.low, line.high):
        body.append(f'<polygon points="{_points([*low, *reversed(high)])}" fill="{colour}" opacity="0.2"/>')
    name = f"<title>{escape(line.name)}</title>"
    body.append(
        f'<polyline points="{_points(middle)}" fill="none" stroke="{colour}" stroke-width="1.6">{name}</polyline>'
    )
    if len(x) <= 20:
        body += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.2" fill="{colour}">{name}</circle>' for a, b in middle]
    return body


def _place(value: float, ticks: list[float], begin: float, end: float) -> float:
    # each divided first, since the span of very large numbers is infinite
    scale = max(abs(ticks[0]), abs(ticks[-1]))
    low, high = ticks[0] / scale, ticks[-1] / scale
    return begin + (float(value) / scale - low) / (high - low) * (end - begin)


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _number(value: float) -> str:
    """Return a number in few characters: 1.5M, 20k, 0.003, 1e-05."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size <= abs(value) < 1000 * size:
            return f"{value / size:.4g}{letter}"
    return f"{value:.4g}"


def _svg(title: str, body: Sequence[str]) -> str:
    head = f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title, quote=True)}">'
    return "\n".join([head, *body, "</svg>"])
