"""The pages of the hook points: a table of all, and a section of each with its rules and its example."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from docstrings import first_sentence, markdown
from tables import table

from rlcore.hooks.specs import POINTS, Point

EXAMPLES: Final = Path(__file__).parent / "examples"
_RUNS_IN: Final = {"outer": "trainer", "inner": "learner", "life": "trainer"}


def overview(where: Sequence[str]) -> str:
    """Return the table of the points that run in these places, in call order."""
    rows = [
        [
            f"[`{point.name}`](#{point.name})",
            first_sentence(point.doc),
            ", ".join(f"`{argument}`" for argument in point.arguments),
            f"`{point.returns}`",
            point.kind,
            _RUNS_IN[point.where],
        ]
        for point in POINTS.values()
        if point.where in where
    ]
    return table(["point", "when and what for", "arguments", "returns", "kind", "runs in"], rows)


def sections() -> str:
    """Return a section per point: what its spec says, and a whole hook."""
    return "\n".join(_section(point) for point in POINTS.values())


def _section(point: Point) -> str:
    example = (EXAMPLES / f"{point.name}.py").read_text().strip()
    return (
        f"### {point.name}\n\n"
        f"*{point.kind}*, `{point.name}({', '.join(point.arguments)}) -> {point.returns}`\n\n"
        f"{markdown(point.doc)}\nExample:\n\n```python\n{example}\n```\n"
    )
