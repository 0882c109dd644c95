"""Standard output and standard error that raise no error; text that cannot be written is dropped.

A closed pipe, a full disk, a closed terminal or a character that it lacks must end no run.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from typing import Any, TextIO, cast


class Lenient:
    """Wraps a text stream so that `write` and `flush` never raise.

    Args:
        stream: takes the text; None drops everything, as `sys.stdout` is None for a closed descriptor.

    Attributes:
        lost: the first error, or None.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = open(os.devnull, "w") if stream is None else stream  # noqa: SIM115 - open as long as the process
        self.lost: Exception | None = None

    def write(self, text: str) -> int:
        """Write text; a character that the encoding lacks is written as its number."""
        try:
            self.stream.write(text)
        except UnicodeEncodeError as error:
            return self.write(text.encode(error.encoding, "backslashreplace").decode(error.encoding))
        except (OSError, ValueError) as error:  # ValueError: the stream is closed
            self.lost = self.lost or error
        return len(text)

    def flush(self) -> None:
        """Flush the stream, if that is possible."""
        try:
            self.stream.flush()
        except (OSError, ValueError) as error:
            self.lost = self.lost or error

    def end(self) -> None:
        """Flush, and drop the rest, as the interpreter flushes again at its end and would report an error."""
        self.flush()
        if self.lost is not None:
            with suppress(OSError, ValueError):  # a stream without a descriptor is not flushed at the end
                descriptor = self.stream.fileno()
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, descriptor)
                os.close(nowhere)

    # equal to its stream: a library may compare `sys.stdout` with what it was
    def __eq__(self, other: object) -> bool:
        return self.stream == (other.stream if isinstance(other, Lenient) else other)

    def __hash__(self) -> int:
        return hash(self.stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def lenient(stream: TextIO | None) -> TextIO:
    """Return a `Lenient` stream around this one."""
    return stream if isinstance(stream, Lenient) else cast("TextIO", Lenient(stream))


@contextmanager
def lenient_output() -> Iterator[Lenient]:
    """Make both streams lenient inside a block; yields the standard output."""
    streams = sys.stdout, sys.stderr
    output, errors = Lenient(sys.stdout), Lenient(sys.stderr)
    sys.stdout, sys.stderr = cast("TextIO", output), cast("TextIO", errors)
    try:
        yield output
    finally:
        output.end()
        errors.end()
        sys.stdout, sys.stderr = streams


@contextmanager
def output_aside() -> Iterator[None]:
    """Send what is printed inside a block to the standard error, by this process and by those that it starts."""
    with ExitStack() as restored:
        with suppress(OSError):  # a closed descriptor
            output = os.dup(1)
            restored.callback(os.close, output)
            restored.callback(os.dup2, output, 1)
            os.dup2(2, 1)
        restored.enter_context(redirect_stdout(sys.stderr))
        yield


def show_log(quiet: bool = False, force: bool = False) -> None:
    """Print log records to stderr.

    Args:
        quiet: print errors alone, and no warnings of Python.
        force: replace handlers that are there.
    """
    logging.basicConfig(format="%(message)s", stream=sys.stderr, force=force)
    logging.getLogger().setLevel(logging.ERROR if quiet else logging.INFO)
    if quiet:
        warnings.simplefilter("ignore")
