"""The HTML of pictures: charts, tables and their frame.

A chart is an image in the page, since notebooks that are not trusted show images and leave out SVG, and since its style
must not reach the page.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from rlcore_plugin_reports import Line, picture

if TYPE_CHECKING:
    from rlcore.types import Array

# metrics of a chart and their names there; the losses stand in where a run has no episodes
SHOWN: Final = {"evaluation/return": "evaluation", "episode/return": "training"}
_LOSS: Final = "train/loss"
_STYLE: Final = "max-width:520px;font:13px/1.5 sans-serif"
_CELL: Final = "text-align:left;padding:1px 12px 1px 0;vertical-align:top"
_HEAD: Final = f"{_CELL};white-space:nowrap"


def framed(parts: Iterable[str]) -> str:
    """Return HTML that frames parts, which are HTML."""
    return f'<div style="{_STYLE}">{"".join(parts)}</div>'


def line(text: str, bold: str = "") -> str:
    """Return a line of text, with a part in front in bold."""
    head = f"<b>{escape(bold)}</b> " if bold else ""
    return f"<div>{head}{escape(text)}</div>"


def table(rows: Mapping[str, str]) -> str:
    """Return a table of two columns: names and texts."""
    cells = "".join(
        f'<tr><th style="{_HEAD}">{escape(name)}</th><td style="{_CELL}">{escape(text)}</td></tr>'
        for name, text in rows.items()
    )
    return f'<table style="font:inherit">{cells}</table>'


def folded(summary: str, text: str) -> str:
    """Return a text that opens by a click."""
    style = "max-height:320px;overflow:auto"
    return f'<details><summary>{escape(summary)}</summary><pre style="{style}">{escape(text)}</pre></details>'


def bar(share: float) -> str:
    """Return a bar that is full to a share of its width."""
    return f'<progress value="{min(max(share, 0.0), 1.0):.4f}" max="1" style="width:100%"></progress>'


def chart(curves: Mapping[str, tuple[Any, Any]], clock: str) -> str:
    """Return the chart of the returns of a run, or of its losses where no episode ended; empty without either.

    Args:
        curves: places on the clock and values, each `[point]`, by metric.
        clock: `frames` or `updates`.
    """
    names = {key: name for key, name in SHOWN.items() if key in curves}
    title = "return" if names else "loss"
    names = names or {key: key.removeprefix("train/") for key in sorted(curves) if is_charted(key)}
    lines = [_line(name, *curves[key]) for key, name in names.items()]
    if not any(np.isfinite(each.y).any() for each in lines):
        return ""
    svg = base64.b64encode(picture(title, lines, clock).encode()).decode()
    return f'<img alt="{title} over {escape(clock)}" src="data:image/svg+xml;base64,{svg}"/>'


def is_charted(key: str) -> bool:
    """Return whether a chart may show a metric."""
    return key in SHOWN or (key.startswith(_LOSS) and key.count("/") == 1)


def _line(name: str, places: Any, values: Any) -> Line:
    x: Array = np.asarray(places, dtype=np.float64)
    y: Array = np.asarray(values, dtype=np.float64)
    return Line(name, x, y, y, y)
