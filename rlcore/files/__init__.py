"""Files that outlive a crash: replaced whole, synced, locked, appended to, and opened without following links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.files.durable import sync_folder as sync_folder
    from rlcore.files.growing import GrowingFile as GrowingFile
    from rlcore.files.lock import LOCK_FILE as LOCK_FILE
    from rlcore.files.lock import Lock as Lock
    from rlcore.files.lock import in_use as in_use
    from rlcore.files.log_files import cut_back as cut_back
    from rlcore.files.log_files import open_log as open_log
    from rlcore.files.log_files import whole_lines as whole_lines
    from rlcore.files.plain_files import inside as inside
    from rlcore.files.plain_files import plain_file as plain_file
    from rlcore.files.plain_files import read_plain as read_plain
    from rlcore.files.replacement import replace as replace
    from rlcore.files.replacement import replacing as replacing
    from rlcore.files.table import Table as Table

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.files.growing": "GrowingFile",
        "rlcore.files.lock": "LOCK_FILE Lock in_use",
        "rlcore.files.plain_files": "inside plain_file read_plain",
        "rlcore.files.log_files": "cut_back open_log whole_lines",
        "rlcore.files.replacement": "replacing replace",
        "rlcore.files.table": "Table",
        "rlcore.files.durable": "sync_folder",
    },
)
