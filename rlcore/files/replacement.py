"""Files replaced as a whole: whoever reads one finds what it held before or what it holds now, and never a part."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rlcore.files.durable import write_durable


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yield a place beside a file, and put what was written there into the place of the file.

    Args:
        file: its folder is there; the file need not be.

    Raises:
        OSError: it cannot be replaced. After this and every other error inside, the file is as it was, and nothing is
            left beside it.
    """
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
        file: its folder is there.
        text: of the file, written in UTF-8.
        durable: whether nobody finds a part after a power cut either; that it is the new text then takes a synced
            folder too.

    Raises:
        OSError: it cannot be written; the one before is as it was, and nothing is left beside it.
    """
    with replacing(file) as place:
        if durable:
            write_durable(place, text)
        else:
            place.write_text(text, encoding="utf-8")
