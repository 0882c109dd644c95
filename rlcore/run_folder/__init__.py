"""The folder of a run: its config, its id and its status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.config.changes import WATCHING as WATCHING
    from rlcore.config.changes import leaves as leaves
    from rlcore.run_folder.ended import last_words as last_words
    from rlcore.run_folder.folder import CHECKPOINTS as CHECKPOINTS
    from rlcore.run_folder.folder import CONFIG_FILE as CONFIG_FILE
    from rlcore.run_folder.folder import check_is_run as check_is_run
    from rlcore.run_folder.folder import read_config as read_config
    from rlcore.run_folder.run_id import ID_FILE as ID_FILE
    from rlcore.run_folder.run_id import read_id as read_id
    from rlcore.run_folder.status import RunState as RunState
    from rlcore.run_folder.status import Status as Status
    from rlcore.run_folder.status import reached_by as reached_by
    from rlcore.run_folder.status import read_status as read_status

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.run_folder.folder": "CHECKPOINTS CONFIG_FILE check_is_run read_config",
        "rlcore.run_folder.ended": "last_words",
        "rlcore.run_folder.status": "reached_by read_status RunState Status",
        "rlcore.config.changes": "WATCHING leaves",
        "rlcore.run_folder.run_id": "ID_FILE read_id",
    },
)
