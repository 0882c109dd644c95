"""What is wrong with a config, in one error."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rlcore.errors import ConfigError

# before the package, at the end of a problem that an installation solves
_INSTALL: Final = ": pip install "


class ConfigProblems(ConfigError):  # noqa: N818 - it is called by what it tells
    """Several things are wrong with a config, or one.

    Attributes:
        path: of the config.
        problems: each in a line or a few.
    """

    def __init__(self, path: Path, problems: Iterable[str]) -> None:
        self.path = path
        self.problems = list(dict.fromkeys(line for problem in problems for line in problem.split("\n  ")))
        super().__init__(_report(path, self.problems))


def _report(path: Path, problems: list[str]) -> str:
    if len(problems) == 1:
        return f"{path}: {problems[0]}"
    lines = [f"{path}: {len(problems)} problems", *problems]
    packages = dict.fromkeys(install for problem in problems if (install := problem.partition(_INSTALL)[2]))
    if len(packages) > 1:
        lines.append(f"what is not installed, at once{_INSTALL}{' '.join(packages)}")
    return "\n  ".join(lines)
