"""Memory without a name, which is gone as soon as no process has it open any more."""

from __future__ import annotations

import os
import tempfile
from typing import Any


def nameless_file(name: str) -> int:
    """Return the file descriptor of such memory.

    Args:
        name: for listings of open files.
    """
    memory: Any = getattr(os, "memfd_create", None)  # Linux has it, where the C library that Python was built with does
    if memory is not None:
        return int(memory(name))
    with tempfile.TemporaryFile() as stream:
        return os.dup(stream.fileno())
