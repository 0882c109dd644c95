"""Metrics and media in Weights & Biases, online or in its offline files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import BaseModel, Field
from rlcore_plugin_spool import SpoolingLogger, require_library, spool_folder

from rlcore.errors import ConfigError, RlcoreError
from rlcore.types import Clock, Context, Secret

if TYPE_CHECKING:
    from rlcore_plugin_wandb.log_server import WandbLogServer


class Config(BaseModel, extra="forbid"):
    """The keys of the config section."""

    mode: Literal["online", "offline"] = Field("online", description="offline writes files for `wandb sync`")
    project: str = Field("rlcore", description="project of W&B")
    entity: str | None = Field(None, description="user or team; default: that of the API key")
    group: str | None = Field(None, description="group of runs that belong together, such as seeds")
    tags: list[str] = Field(default_factory=list, description="tags of the run")
    base_url: str | None = Field(None, description="address of the server; default: WANDB_BASE_URL, or W&B's own")
    api_key: Secret | None = Field(None, description="the API key; default: WANDB_API_KEY, or that of `wandb login`")


class WandbLogger(SpoolingLogger):
    """Writes into a run of Weights & Biases; every row has the clock of the run, the step of all plots.

    Without an API key the run is written offline. While the server cannot be reached at the start, records wait in the
    spool. What the server did not confirm by the end is not forgotten: `rlcore sync` sends what is missing there.

    Args:
        exp_name: name of the run.
        offline: whether to write files for `wandb sync` and contact no server.
        save_dir: the folder around W&B's folder `wandb`; default: the working directory.
        id: of the run; default: W&B makes one.
        project: name of the project.
        base_url: address of the server; default: `WANDB_BASE_URL`, or W&B's own.
        log_dir: another name of `save_dir`.
        api_key: default: `WANDB_API_KEY`, or that of `wandb login`.
        spool: folder for what waits to be sent; default: one of its own, `spool/EXP_NAME-…` below `save_dir`; a resume
            returns to it.
        process: whether W&B is used in a process of its own, which keeps it away from training; then there is no
            `experiment`.
        video_fps: frames per second of videos that come without.
        log_env_packages: whether to write the versions of Python and all packages into the run's config.
        clock: what steps count.
        init: further arguments of `wandb.init`.

    Raises:
        PluginError: W&B is not installed.
        ConfigError: `save_dir` and `log_dir` are both given.
    """

    def __init__(
        self,
        exp_name: str,
        offline: bool = False,
        save_dir: str | Path | None = None,
        id: str | None = None,
        project: str | None = None,
        base_url: str | None = None,
        *,
        log_dir: str | Path | None = None,
        api_key: str | None = None,
        spool: Path | None = None,
        process: bool = False,
        video_fps: int = 32,
        log_env_packages: bool = True,
        clock: Clock = "frames",
        **init: Any,
    ) -> None:
        if save_dir is not None and log_dir is not None:
            raise ConfigError("save_dir and log_dir are two names of one folder; give one of them")
        folder = Path(save_dir or log_dir or ".")
        require_library("wandb", type(self).__name__)
        arguments = {
            "folder": str(folder),
            "offline": offline,
            "base_url": base_url,
            "api_key": api_key,
            "log_env_packages": log_env_packages,
            "clock": clock,
            "init": {"name": exp_name, "project": project, "id": id, **init},
        }
        target = "rlcore_plugin_wandb.log_server:WandbLogServer"
        super().__init__(exp_name, str(folder), folder, target, arguments, process, spool)
        server = base_url or os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")
        self.destination = f"offline files in {folder / 'wandb'}" if offline else server
        self.video_fps = video_fps

    @property
    def experiment(self) -> Any:
        """The `wandb.Run`; waits until it is opened.

        Raises:
            RlcoreError: it cannot be opened, or is in another process.
        """
        connected = self.log_server()
        if connected is None:
            raise RlcoreError("W&B runs in another process here; with process=False there is an `experiment`")
        return cast("WandbLogServer", connected).run

    def log_video(self, name: str, video: Any, step: int | None = None, fps: int | None = None) -> None:
        """Spool videos as one GIF."""
        super().log_video(name, video, step, fps or self.video_fps)


def build(config: Config, context: Context) -> WandbLogger:
    """Return the logger of a run, whose offline files are in `wandb/` of the run folder."""
    folder = context.run.folder
    if folder is None:
        raise ConfigError("the wandb logger needs a run folder")
    return WandbLogger(
        context.run.name,
        offline=config.mode == "offline",
        save_dir=folder.resolve(),
        project=config.project,
        base_url=config.base_url,
        api_key=config.api_key.reveal() if config.api_key else None,
        spool=spool_folder(folder.resolve(), context.name),
        process=True,
        log_env_packages=False,
        clock=context.progress.clock,
        **{key: value for key in ("entity", "group", "tags") if (value := getattr(config, key))},
    )
