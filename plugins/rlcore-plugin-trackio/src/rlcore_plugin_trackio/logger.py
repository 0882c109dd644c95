"""Metrics and media in Trackio, the local-first tracker of Hugging Face."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, Field, field_validator
from rlcore_plugin_spool import SpoolingLogger, require_library, spool_folder

from rlcore.errors import ConfigError
from rlcore.types import Context

_PROJECT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
# Trackio's files beside that of a project end so, and those of registries begin so
_TAKEN: Final = re.compile(
    r"registry-.*|.*_(system|configs|traces|artifacts|artifact_versions|artifact_aliases|run_artifact_links)"
)


class Config(BaseModel, extra="forbid"):
    """The keys of the config section."""

    project: str = Field("rlcore", description="name of the project; it is made when it is missing")
    group: str | None = Field(None, description="of runs that the dashboard shows together; default: none")

    @field_validator("project")
    @classmethod
    def _can_be_a_project(cls, project: str) -> str:
        if problem := problem_of(project):
            raise ValueError(problem)
        return project


def problem_of(project: str) -> str:
    """Return why Trackio would refuse a project, or keep it under another name; empty for one that it takes."""
    if not _PROJECT.fullmatch(project):
        return f"project {project!r} is not of letters, digits, `_` and `-`"
    if _TAKEN.fullmatch(project):
        return f"project {project!r} has a name under which Trackio keeps files of its own; choose another"
    return ""


class TrackioLogger(SpoolingLogger):
    """Writes into a run of Trackio on this machine, with the environment frames as step; `trackio show` shows it.

    The database is where Trackio looks for it: `TRACKIO_DIR`, by default a folder in the cache of Hugging Face.

    Args:
        exp_name: name of the run.
        project: its name; it is made when it is missing.
        video_fps: frames per second of videos that come without.
        group: of runs that the dashboard shows together; None for none.
        log_dir: the folder around `spool`; default: the working directory.
        spool: folder for what waits to be written; default: one of its own, `spool/EXP_NAME-…` below `log_dir`; a
            resume returns to it.
        process: whether Trackio is used in a process of its own, which keeps what it imports away from training.

    Raises:
        PluginError: Trackio is not installed.
        ConfigError: the project or the run cannot have that name.
    """

    def __init__(
        self,
        exp_name: str,
        project: str = "rlcore",
        *,
        video_fps: int = 30,
        group: str | None = None,
        log_dir: str | Path | None = None,
        spool: Path | None = None,
        process: bool = True,
    ) -> None:
        require_library("trackio", type(self).__name__)
        problem = problem_of(project)
        if exp_name in ("", ".", "..") or "/" in exp_name or "\0" in exp_name:
            problem = f"exp_name {exp_name!r} cannot be that of a folder, in which Trackio keeps the media of a run"
        if problem:
            raise ConfigError(f"{type(self).__name__}: {problem}")
        self.project, self.video_fps = project, video_fps
        arguments = {"project": project, "run_name": exp_name, "group": group}
        target = "rlcore_plugin_trackio.log_server:TrackioLogServer"
        super().__init__(exp_name, project, Path(log_dir or "."), target, arguments, process, spool)

    @property
    def experiment(self) -> Any:
        """The run in Trackio's own `Api`; waits until it is opened.

        Raises:
            RlcoreError: it cannot be opened.
        """
        import trackio

        self.start(wait=True)
        return next(run for run in trackio.Api().runs(self.project) if run.id == self.id)

    def log_video(self, name: str, video: Any, step: int | None = None, fps: int | None = None) -> None:
        """Spool videos as one GIF."""
        super().log_video(name, video, step, fps or self.video_fps)


def build(config: Config, context: Context) -> TrackioLogger:
    """Return the logger of a run."""
    folder = context.run.folder
    if folder is None:
        raise ConfigError("the trackio logger needs a run folder")
    spool = spool_folder(folder.resolve(), context.name)
    return TrackioLogger(context.run.name, config.project, group=config.group, spool=spool)
