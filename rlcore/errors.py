"""The errors that rlcore raises, each with its exit code, what an error says, and the nearest-name helper.

Handling them is the business of the callers.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final


class RlcoreError(Exception):
    """Base of every error that rlcore raises on purpose.

    A message says what was wrong, where, whose it was, and what to do. Each kind is also the built-in error that other
    trainers raise in its place, so that a script which catches that one goes on working.
    """

    exit_code = 1
    __str__ = Exception.__str__  # that of KeyError would show the message in quotes


class ConfigError(RlcoreError, ValueError):
    """The config, the command line or the run folder cannot be used; found before the first frame.

    Args:
        message: what was wrong, where, and what to do.
        remedy: the config with which it would fit, as far as it differs: keys by section, whose lists are added to;
            tables that come before those of a section that can be repeated; or such a table's name, None to leave it
            out. `rlcore init` writes it.
    """

    exit_code = 2

    def __init__(self, *message: object, remedy: Mapping[str, Any] = MappingProxyType({})) -> None:
        super().__init__(*message)
        self.remedy = dict(remedy)


class NotBuiltError(ConfigError):
    """A part asks for another one that is not built."""


class ArgumentTypeError(ConfigError, TypeError):
    """An argument in a script is of a type that cannot be used."""


class NotSupportedError(ConfigError, NotImplementedError):
    """Arguments that do not fit together, or ask for what is not here."""


class NoSuchAttributeError(ConfigError, AttributeError):
    """A trainer has no attribute of that name, so that setting it would do nothing."""


class PluginError(RlcoreError):
    """A plugin cannot be found, imported or used as it is."""

    exit_code = 2


class MissingPluginError(PluginError, ImportError):
    """A plugin, or a package that it needs, is not installed."""


class UnnamedPluginError(PluginError):
    """A component is of an installed plugin that the config does not name."""


class NotProvidedError(PluginError, NotImplementedError):
    """Nothing of that name is provided."""


class HookError(RlcoreError, RuntimeError):
    """A hook broke the contract of its point, for example by returning a wrong type."""

    exit_code = 7


class HookArgumentError(HookError, ValueError):
    """A stock hook was built with a value that it cannot use."""


class UnwrittenEntryError(ConfigError, KeyError):
    """A minibatch has no entry that a loss or a hook reads."""


class EnvError(RlcoreError, RuntimeError):
    """An environment cannot be made, or gave something that cannot be trained on."""

    exit_code = 3


class RankLost(RlcoreError, RuntimeError):  # noqa: N818 - what happened, of which the run is not to blame
    """A process that trains together with others is gone or does not move, so that they cannot go on.

    Args:
        message: what was seen.
        rank: number of that process; None if it is not known, or if none is to blame.
    """

    exit_code = 3

    def __init__(self, message: str, rank: int | None = None) -> None:
        super().__init__(message)
        self.rank = rank


class NumericalError(RlcoreError, RuntimeError):
    """A loss, a gradient or a parameter is not finite."""

    exit_code = 4


class StorageError(RlcoreError, RuntimeError):
    """A checkpoint cannot be written, read or trusted."""

    exit_code = 5


class NoCheckpointError(StorageError, FileNotFoundError):
    """There is no checkpoint at a path."""


class MissingStateError(StorageError, KeyError):
    """A checkpoint lacks the state of a part, or has one that nothing takes."""


class Interruption(BaseException):
    """Ends what runs from outside of it; it is no error of a part, and no part may take it for one."""


# What comes from outside of a part. Whoever calls a part lets these through and takes everything else that it raises,
# `SystemExit` and `GeneratorExit` among it, for an error of that part.
FROM_OUTSIDE: Final = (KeyboardInterrupt, Interruption)

# of `difflib`, from 0 to 1: below it, a guess leads astray more often than it helps
_ALIKE: Final = 0.6
# in the attributes of an error that a part raised
_COUNTS_AS: Final = "_rlcore_counts_as"


class EndOfData(Exception):  # noqa: N818 - not an error
    """Says that a collector has no more batches; the run ends there as if it had been asked to stop."""


class EndOfEpoch(Exception):  # noqa: N818 - not an error
    """Says that an epoch of optimisation is over, raised while its next minibatch is sampled or processed."""


class named:  # noqa: N801 - used as a function; a generator could not tell `StopIteration` from its own end
    """Say in a note on any error from inside that it was raised by `whose`.

    Raises:
        RlcoreError: of that `kind`, in place of what ends programs or loops, and would do so here without a word.
    """

    def __init__(self, whose: str, kind: type[RlcoreError] = RlcoreError) -> None:
        self._whose = whose
        self._kind = kind

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Name the error, if there is one."""
        if isinstance(error, SystemExit | GeneratorExit | StopIteration):
            raise self._kind(f"{self._whose} raised {describe(error)}: a part cannot exit") from error
        if error is not None and not isinstance(error, Interruption):
            blame(error, self._whose, self._kind)


def note(error: BaseException, text: str) -> None:
    """Add a note to an error, which may forbid that."""
    with suppress(Exception):
        error.add_note(text)


def notes_of(error: BaseException) -> list[str]:
    """Return the notes of an error, in the order in which they were added."""
    return list(getattr(error, "__notes__", ()))  # there is no such attribute before the first note


def blame(error: BaseException, whose: str, kind: type[RlcoreError] = RlcoreError) -> None:
    """Say on an error whose it is, in a note for people, and as which kind of error it counts, for the exit code."""
    note(error, f"raised by {whose}")
    if kind is not RlcoreError:
        vars(error)[_COUNTS_AS] = kind


def exit_code_of(error: BaseException) -> int:
    """Return the exit code of an error that is not rlcore's own: 1, or that of the kind which it was blamed as."""
    return int(vars(error).get(_COUNTS_AS, RlcoreError).exit_code)


def describe(error: BaseException) -> str:
    """Return `"Kind: message"`, or the kind alone without a message, whatever the methods of the error do."""
    kind = type(error).__name__
    try:
        message = str(error)
    except FROM_OUTSIDE:
        raise
    except BaseException as failed:
        message = f"its message cannot be read, {type(failed).__name__}"
    return f"{kind}: {message}" if message else kind


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the entry of `names` most like `name`, or None when nothing is alike.

    Words inside a longer name count too, so that `clpi` finds `clip_epsilon`.
    """

    def similarity(candidate: str) -> float:
        if sorted(name.lower()) == sorted(candidate.lower()):  # letters that changed places are the commonest slip
            return 1.0
        words = candidate.replace("-", "_").split("_")
        ratios = [difflib.SequenceMatcher(None, name.lower(), word.lower()).ratio() for word in words]
        whole = difflib.SequenceMatcher(None, name.lower(), candidate.lower()).ratio()
        return max(whole, 0.95 * max(ratios))  # of two that are alike, the one that is alike as a whole

    candidates = sorted(set(names))
    best = max(candidates, key=similarity, default=None)
    return best if best is not None and similarity(best) >= _ALIKE else None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return `"; did you mean 'X'?"` for the name most like it, or an empty string."""
    best = nearest(name, names)
    return f"; did you mean {best!r}?" if best else ""
