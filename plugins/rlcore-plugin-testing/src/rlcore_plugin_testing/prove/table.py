"""What was proved, as a table."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["holds", "does not hold", "not claimed", "measured"]
_WIDTH = 78


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        claim: what is looked at.
        verdict: `not claimed` is said of what the run itself says that it cannot do.
        figures: what was seen.
    """

    claim: str
    verdict: Verdict
    figures: str


def table(rows: Iterable[Row]) -> str:
    """Return the rows as text."""
    rows = list(rows)
    claims, verdicts = max(len(row.claim) for row in rows), max(len(row.verdict) for row in rows)
    lines = []
    for row in rows:
        first, *others = textwrap.wrap(row.figures, _WIDTH) or [""]
        lines.append(f"{row.claim:<{claims}}  {row.verdict:<{verdicts}}  {first}")
        lines += [" " * (claims + verdicts + 4) + other for other in others]
    return "\n".join(lines)


def failed(rows: Iterable[Row]) -> bool:
    """Return whether anything that is claimed does not hold."""
    return any(row.verdict == "does not hold" for row in rows)
