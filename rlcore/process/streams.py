"""Standard output and standard error that end no command: what cannot be written is dropped.

A closed pipe, a full disk, a terminal that is gone and a character that the terminal lacks are no errors of a run.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast


class Lenient:
    """A text stream whose `write` and `flush` never raise; all else is the stream's own.

    Args:
        stream: where text goes; None, as Python has it for a closed descriptor, drops everything.

    Attributes:
        lost: the first error of writing, or None.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = open(os.devnull, "w") if stream is None else stream  # noqa: SIM115 - open as long as the process
        self.lost: Exception | None = None

    def write(self, text: str) -> int:
        """Write what can be written; a character that the encoding lacks as its number."""
        try:
            self.stream.write(text)
        except UnicodeEncodeError as error:
            return self.write(text.encode(error.encoding, "backslashreplace").decode(error.encoding))
        except (OSError, ValueError) as error:  # ValueError: the stream is closed
            self.lost = self.lost or error
        return len(text)

    def flush(self) -> None:
        """Write what waits, if that is possible."""
        try:
            self.stream.flush()
        except (OSError, ValueError) as error:
            self.lost = self.lost or error

    def end(self) -> None:
        """Flush, and drop what is left, on which the interpreter would fail at its end."""
        self.flush()
        if self.lost is not None:
            with suppress(OSError, ValueError):  # a stream without a descriptor has nothing that could wait
                descriptor = self.stream.fileno()
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, descriptor)
                os.close(nowhere)

    def __eq__(self, other: object) -> bool:
        return self.stream == (other.stream if isinstance(other, Lenient) else other)

    def __hash__(self) -> int:
        return hash(self.stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)  # whatever the stream has


def lenient(stream: TextIO | None) -> TextIO:
    """Return a stream that drops what it cannot write."""
    return stream if isinstance(stream, Lenient) else cast("TextIO", Lenient(stream))


@contextmanager
def lenient_output() -> Iterator[Lenient]:
    """Make both streams lenient inside; yields the standard output."""
    streams = sys.stdout, sys.stderr
    output, errors = Lenient(sys.stdout), Lenient(sys.stderr)
    sys.stdout, sys.stderr = cast("TextIO", output), cast("TextIO", errors)
    try:
        yield output
    finally:
        output.end()
        errors.end()
        sys.stdout, sys.stderr = streams


def show_log(quiet: bool = False, force: bool = False) -> None:
    """Write what is logged on stderr: errors alone where nothing else is to be shown.

    Args:
        quiet: whether warnings and progress are left out, warnings of Python among them.
        force: whether to take the place of what writes it so far.
    """
    logging.basicConfig(format="%(message)s", stream=sys.stderr, force=force)
    logging.getLogger().setLevel(logging.ERROR if quiet else logging.INFO)
    if quiet:
        warnings.simplefilter("ignore")


def printable(text: object) -> str:
    """Return `str(text)` with everything that a terminal would obey written out, as `repr` does."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in str(text))
