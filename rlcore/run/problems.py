"""What is wrong with the parts of a run, gathered while they are built one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from rlcore.config.problems import ConfigProblems
from rlcore.errors import ConfigError, NotBuiltError, RlcoreError, describe, notes_of

Built = TypeVar("Built")


class BuildProblems:
    """Takes the errors of parts that cannot be built, so that those which do not depend on them are tried too.

    Args:
        path: of the config.
        missing: kinds of which some part is missing from the start.
    """

    def __init__(self, path: Path, missing: Iterable[str] = ()) -> None:
        self._path = path
        self._missing = set(missing)
        self._errors: list[Exception] = []

    def attempt(self, kind: str, build: Callable[..., Built], needs: Iterable[str] = ()) -> Built | None:
        """Return what `build` returns, or None where it fails, or where a kind that it needs is missing.

        Args:
            kind: of what is built.
            build: builds it; takes keys of its section that a remedy says.
            needs: kinds without which it cannot be built.
        """
        if self._missing.isdisjoint(needs):
            try:
                return build()
            except NotBuiltError as error:  # the absence of a part that failed is no further problem
                if not self._missing:
                    self._errors.append(error)
            except Exception as error:
                if not (self._missing and isinstance(error, KeyError | AttributeError) and not _is_ours(error)):
                    self._errors.append(error)
                keys = error.remedy.get(kind) if isinstance(error, ConfigError) else None
                if isinstance(keys, dict):  # what depends on the part is tried with the one that it could be
                    with suppress(Exception):
                        return build(**keys)
        self._missing.add(kind)
        return None

    def has(self, kind: str) -> bool:
        """Return whether nothing of a kind is missing."""
        return kind not in self._missing

    def end(self) -> None:
        """Raise what was found: the error itself where there is one, all in one message where there are several.

        Raises:
            ConfigProblems: several parts cannot be built.
            NotBuiltError: nothing was found, but something was missing from the start.
        """
        messages = {_message(error): error for error in self._errors}
        if len(messages) == 1:
            raise next(iter(messages.values()))
        if messages:
            problems = ConfigProblems(self._path, messages)
            remedies = (error.remedy for error in messages.values() if isinstance(error, ConfigError) and error.remedy)
            problems.remedy = next(remedies, {})
            raise problems from self._errors[0]
        if self._missing:
            raise NotBuiltError(f"{self._path}: {', '.join(sorted(self._missing))} cannot be built")


def _message(error: Exception) -> str:
    """Return the message of an error, with its kind and whose it is where it is not one of ours."""
    if _is_ours(error):
        return str(error)
    return "; ".join([describe(error), *notes_of(error)])


def _is_ours(error: Exception) -> bool:
    return isinstance(error, RlcoreError)


def problems_of(error: Exception) -> list[str]:
    """Return the problems that an error of building tells."""
    if isinstance(error, NotBuiltError):
        return []
    return list(error.problems) if isinstance(error, ConfigProblems) else [_message(error)]
