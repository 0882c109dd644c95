"""What the presets of this repository reached, as Markdown."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from tables import table

ROOT: Final = Path(__file__).resolve().parents[2]


def reached(algorithm: str) -> str:
    """Return the table of the presets of an algorithm, with the returns that were measured."""
    rows = []
    for file in sorted(ROOT.glob("plugins/*/src/*/presets/*.toml")):
        about = tomllib.loads(file.read_text())["preset"]
        if about["algorithm"] == algorithm:
            rows += [[f"`{file.stem}`", about["summary"], *_result(entry)] for entry in about.get("reached", [{}])]
    return table(["preset", "what for", "env", "frames", "return of each seed"], rows)


def _result(entry: dict[str, Any]) -> list[str]:
    if not entry:
        return ["", "", "not measured"]
    returns = ", ".join(f"{value:,.1f}" for value in entry["returns"])
    return [entry["env"], f"{entry['frames']:,}", returns]
