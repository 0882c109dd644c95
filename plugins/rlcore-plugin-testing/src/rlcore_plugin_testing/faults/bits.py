"""Damage to the files of a folder, one at a time, each undone after it was looked at."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rlcore.checkpoints.manifest import MANIFEST, render
from rlcore.files.durable import describe


@contextmanager
def kept(folder: Path) -> Iterator[None]:
    """Put a folder back at the end as it was at the beginning; what stands beside it is not looked at."""
    copy = folder.with_name(f".kept-{folder.name}")
    shutil.copytree(folder, copy, symlinks=True)
    try:
        yield
    finally:
        if folder.is_symlink():
            folder.unlink()
        else:
            shutil.rmtree(folder, ignore_errors=True)
        os.rename(copy, folder)


def flipped_bits(file: Path, most: int | None = None, seed: int = 0) -> Iterator[str]:
    """Flip one bit of a file after the other, and yield what is damaged while it is.

    Args:
        file: is whole again before the next one, and at the end.
        most: bits to flip; where the file has more, so many are chosen, always the same for one seed.
        seed: of that choice.

    Example:
        for damage in flipped_bits(file):
            with pytest.raises(StorageError):
                load()
    """
    content = file.read_bytes()
    bits: range | list[int] = range(8 * len(content))
    if most is not None and len(bits) > most:
        bits = sorted(random.Random(seed).sample(bits, most))
    descriptor = os.open(file, os.O_WRONLY)
    try:
        for bit in bits:
            place = bit // 8
            os.pwrite(descriptor, bytes([content[place] ^ (1 << bit % 8)]), place)
            try:
                yield f"{file.name}: bit {bit % 8} of byte {place} of {len(content)}"
            finally:
                os.pwrite(descriptor, content[place : place + 1], place)
    finally:
        os.close(descriptor)


def cut_files(file: Path, most: int | None = None, seed: int = 0) -> Iterator[str]:
    """Cut a file to every length below its own, and yield what is damaged; the arguments are as for `flipped_bits`."""
    content = file.read_bytes()
    lengths: range | list[int] = range(len(content))
    if most is not None and len(lengths) > most:
        lengths = sorted(random.Random(seed).sample(lengths, most))
    for length in lengths:
        os.truncate(file, length)
        try:
            yield f"{file.name}: cut to {length} of {len(content)} bytes"
        finally:
            file.write_bytes(content)


def rearranged(folder: Path) -> Iterator[str]:
    """Remove, rename, swap and replace the files of a folder, and yield what is done while it is.

    Each file in turn: missing, under another name, overwritten by another, swapped with another, a folder, a named
    pipe, a symbolic link to its own content, a hard link, longer by a byte. Everything is put back each time.
    """
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    for name in names:
        file = folder / name
        for what, damage in _SINGLE.items():
            with kept(folder):
                damage(file)
                yield f"{name}: {what}"
            folder.with_name(f".beside-{name}").unlink(missing_ok=True)
        for other in names:
            if other != name and (folder / other).read_bytes() != file.read_bytes():
                with kept(folder):
                    shutil.copyfile(folder / other, file)
                    yield f"{name}: overwritten by {other}"
                if other > name:
                    with kept(folder):
                        _swap(file, folder / other)
                        yield f"{name}: swapped with {other}"


def forge(checkpoint: Path, **changes: Any) -> None:
    """Make the manifest of a checkpoint fit its files again, as somebody would who changed them on purpose.

    Args:
        checkpoint: folder of a checkpoint; files that are not in it any more leave the manifest.
        changes: entries of the manifest to replace.
    """
    manifest = json.loads((checkpoint / MANIFEST).read_bytes())
    files = {}
    for path in sorted(checkpoint.iterdir()):
        if path.name != MANIFEST and path.is_file():
            with path.open("rb") as stream:
                files[path.name] = describe(stream)
    (checkpoint / MANIFEST).write_text(render({**manifest, "files": files, **changes}))


def _swap(left: Path, right: Path) -> None:
    aside = left.with_name(".aside")
    left.rename(aside)
    right.rename(left)
    aside.rename(right)


def _as_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _as_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _as_link(file: Path, link: Callable[[Path, Path], None]) -> None:
    beside = file.parent.with_name(f".beside-{file.name}")
    beside.unlink(missing_ok=True)
    file.rename(beside)
    link(beside, file)


def _longer(file: Path) -> None:
    with file.open("ab") as stream:
        stream.write(b" ")


_SINGLE: dict[str, Callable[[Path], object]] = {
    "missing": lambda file: file.unlink(),
    "under another name": lambda file: file.rename(file.with_name(f"{file.name}.bak")),
    "empty": lambda file: file.write_bytes(b""),
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "longer by a byte": _longer,
    "a folder": _as_folder,
    "a named pipe": _as_pipe,
    "a symbolic link": lambda file: _as_link(file, lambda target, link: os.symlink(target.resolve(), link)),
    "a hard link": lambda file: _as_link(file, os.link),
}
