"""What is wrong with a config, in one error."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rlcore.errors import ConfigError


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
    return f"{path}: {len(problems)} problems\n" + "\n".join(f"  {problem}" for problem in problems)
