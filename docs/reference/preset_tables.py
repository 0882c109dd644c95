"""The presets of this repository and what they reached, as Markdown."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from tables import table

ROOT: Final = Path(__file__).resolve().parents[2]


def every() -> str:
    """Return the table of all presets, by algorithm, with the environments in which they were measured."""
    listed = [
        [
            about["algorithm"],
            f"`{name}`",
            about["summary"],
            ", ".join(dict.fromkeys(entry["env"] for entry in about.get("reached", []))),
        ]
        for name, about in _abouts()
    ]
    return table(["algorithm", "preset", "what for", "measured in"], sorted(listed))


def algorithms() -> set[str]:
    """Return the algorithms that have presets."""
    return {about["algorithm"] for _, about in _abouts()}


def reached(algorithm: str) -> str:
    """Return the table of the presets of an algorithm, with the returns that were measured."""
    rows = []
    for name, about in _abouts():
        if about["algorithm"] == algorithm:
            rows += [[f"`{name}`", about["summary"], *_result(entry)] for entry in about.get("reached", [{}])]
    return table(["preset", "what for", "env", "frames", "return of each seed"], rows)


def _abouts() -> list[tuple[str, dict[str, Any]]]:
    """Return the name of each preset, and what it says about itself."""
    files = sorted(ROOT.glob("plugins/*/src/*/presets/*.toml"))
    return [(file.stem, tomllib.loads(file.read_text())["preset"]) for file in files]


def _result(entry: dict[str, Any]) -> list[str]:
    if not entry:
        return ["", "", "not measured"]
    returns = ", ".join(f"{value:,.1f}" for value in entry["returns"])
    return [entry["env"], f"{entry['frames']:,}", returns]
