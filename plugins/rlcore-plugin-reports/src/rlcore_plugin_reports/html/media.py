"""The latest images and videos of runs, inside the page while there is room."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from rlcore.errors import StorageError
from rlcore.files import read_plain
from rlcore_plugin_reports.run_files import RunFiles

EMBEDDED_BYTES: Final = 32 * 2**20
MEDIA_TYPES: Final = {".gif": "image/gif", ".png": "image/png", ".mp4": "video/mp4", ".webm": "video/webm"}
_PER_RUN: Final = 6


def media(runs: Sequence[RunFiles]) -> list[dict[str, Any]]:
    """Return caption and data of each file; those beyond the room, or that cannot be read, have no data."""
    found, room = [], EMBEDDED_BYTES
    for run in runs:
        for file in media_files(run.folder):
            entry: dict[str, Any] = {"caption": f"{run.folder.resolve().name}: {file.relative_to(run.folder)}"}
            try:
                content = read_plain(file, room)
            except (OSError, StorageError):
                found.append(entry | {"left_out": file.stat().st_size})
                continue
            room -= len(content)
            kind = MEDIA_TYPES[file.suffix]
            source = f"data:{kind};base64,{base64.b64encode(content).decode()}"
            found.append(entry | {"source": source, "is_video": kind.startswith("video")})
    return found


def media_files(folder: Path) -> list[Path]:
    """Return the latest images and videos of a run folder, the last first; no links."""
    files = [
        file for name in ("videos", "images") for file in _files_below(folder / name) if file.suffix in MEDIA_TYPES
    ]
    return sorted(files, key=lambda file: (file.name, str(file)), reverse=True)[:_PER_RUN]


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and in its folders, in no order; links are neither followed nor yielded."""
    if folder.is_symlink():
        return
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if not path.is_symlink() and path.is_file():
                yield path
