"""Replacing files as a whole: a reader finds the old content or the new, and never a part."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rlcore.files.durable import write_durable


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yield a path beside a file to write to, and rename it to the file in the end.

    Args:
        file: in a folder that exists; the file itself need not.

    Raises:
        OSError: it cannot be replaced. After any error the file is as it was, and the path beside it is removed.
    """
    # beside the file, as `os.replace` is atomic within one file system
    place = file.with_name(f".{file.name}-{secrets.token_hex(3)}")
    try:
        yield place
        os.replace(place, file)
    except BaseException:
        with suppress(OSError):
            place.unlink(missing_ok=True)
        raise


def replace(file: Path, text: str, durable: bool) -> None:
    """Write a file as a whole.

    Args:
        file: in a folder that exists.
        text: the new content, written in UTF-8.
        durable: sync it before the rename, so that it is whole after a power cut too; whether it is the old content or
            the new then depends on a sync of the folder.

    Raises:
        OSError: it cannot be written; the file is as it was.
    """
    with replacing(file) as place:
        if durable:
            write_durable(place, text)
        else:
            place.write_text(text, encoding="utf-8")
