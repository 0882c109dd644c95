"""The folder of a run: its files, its status, and whose it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.config.changes import WATCHING as WATCHING
    from rlcore.config.changes import leaves as leaves
    from rlcore.run_folder.ended import last_words as last_words
    from rlcore.run_folder.folder import CHECKPOINTS as CHECKPOINTS
    from rlcore.run_folder.folder import CONFIG_FILE as CONFIG_FILE
    from rlcore.run_folder.folder import read_config as read_config
    from rlcore.run_folder.status import reached_by as reached_by
    from rlcore.run_folder.status import read_status as read_status
    from rlcore.run_folder.warnings_file import read_warnings as read_warnings

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.run_folder.folder": "CHECKPOINTS CONFIG_FILE read_config",
        "rlcore.run_folder.ended": "last_words",
        "rlcore.run_folder.status": "reached_by read_status",
        "rlcore.run_folder.warnings_file": "read_warnings",
        "rlcore.config.changes": "WATCHING leaves",
    },
)
