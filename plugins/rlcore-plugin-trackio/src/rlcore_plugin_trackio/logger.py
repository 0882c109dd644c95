"""Metrics and media in Trackio, the local-first tracker of Hugging Face."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field, field_validator
from rlcore_plugin_spool import SpoolingLogger, require_library, spool_folder

from rlcore.errors import ConfigError
from rlcore.types import Context

# files of Trackio beside that of a project end so, and those of registries begin so
_TAKEN: Final = re.compile(
    r"registry-.*|.*_(system|configs|traces|artifacts|artifact_versions|artifact_aliases|run_artifact_links)"
)


class Config(BaseModel, extra="forbid"):
    """The keys of the config section."""

    project: str = Field(
        "rlcore",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$",
        max_length=100,
        description="name of the project; it is made when it is missing",
    )
    group: str | None = Field(None, description="of runs that the dashboard shows together; default: none")

    @field_validator("project")
    @classmethod
    def _free(cls, project: str) -> str:
        if _TAKEN.fullmatch(project):
            raise ValueError("Trackio keeps files of its own under such a name; choose another")
        return project


class TrackioLogger(SpoolingLogger):
    """Writes into a run of Trackio on this machine, with the environment frames as step; `trackio show` shows it.

    The database is where Trackio looks for it: `TRACKIO_DIR`, by default a folder in the cache of Hugging Face.

    Args:
        project: its name; it is made when it is missing.
        run_name: of the run, without a slash.
        group: of runs that the dashboard shows together; None for none.
        spool: folder for what waits to be written.

    Raises:
        PluginError: Trackio is not installed.
    """

    def __init__(self, project: str, run_name: str, group: str | None, spool: Path) -> None:
        require_library("trackio", type(self).__name__)
        arguments = {"project": project, "run_name": run_name, "group": group}
        target = "rlcore_plugin_trackio.log_server:TrackioLogServer"
        # in a process of its own, which keeps what Trackio imports away from training
        super().__init__(project, f"Trackio: {project}", spool.parent, target, arguments, process=True, spool=spool)


def build(config: Config, context: Context) -> TrackioLogger:
    """Return the logger of a run."""
    folder = context.run.folder
    if folder is None:
        raise ConfigError("the trackio logger needs a run folder")
    spool = spool_folder(folder.resolve(), context.name)
    return TrackioLogger(config.project, context.run.name, config.group, spool)
