"""Metrics and media in MLflow: a tracking server, or a database file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, field_validator
from rlcore_plugin_spool import SpoolingLogger, require_library, spool_folder

from rlcore.errors import ConfigError
from rlcore.types import Context, Secret


class Config(BaseModel, extra="forbid"):
    """The keys of the config section."""

    tracking_uri: str | None = Field(
        None, description="server or database; default: MLFLOW_TRACKING_URI, or `mlflow.db` beside the run folder"
    )
    experiment: str = Field("rlcore", description="name of the experiment; it is made when it is missing")
    tags: dict[str, str] = Field(default_factory=dict, description="tags of the run")
    artifact_location: str | None = Field(None, description="where a new experiment keeps media; default: MLflow's")
    token: Secret | None = Field(None, description="bearer token of the server; default: MLFLOW_TRACKING_TOKEN")

    @field_validator("tracking_uri")
    @classmethod
    def _no_password(cls, uri: str | None) -> str | None:
        if uri and urlsplit(uri).password:
            raise ValueError("an address with a password would be written into the run folder; set MLFLOW_TRACKING_URI")
        return uri


class MLFlowLogger(SpoolingLogger):
    """Writes into a run of MLflow, with the environment frames as step.

    Metric names may hold letters, digits and `_-. :/`; every other character becomes `_`. Histograms, images, videos
    and texts are artifacts, named after the metric and the step.

    Args:
        exp_name: name of the experiment; it is made when it is missing.
        tracking_uri: a server (`http://…`) or a database (`sqlite:///…`); nothing is started there.
        tags: of the run.
        artifact_location: where a new experiment keeps media; default: MLflow's, and for a database file the folder
            `mlartifacts` beside it.
        video_fps: frames per second of videos that come without.
        run_name: default: MLflow makes one.
        token: bearer token of the server; default: `MLFLOW_TRACKING_TOKEN`.
        save_dir: the folder around `spool`; default: the working directory.
        spool: folder for what waits to be sent; default: one of its own, `spool/EXP_NAME-…` below `save_dir`; a resume
            returns to it.
        process: whether MLflow is used in a process of its own, which keeps it away from training: it uses
            Python's global random generator.

    Raises:
        PluginError: MLflow is not installed.
    """

    def __init__(
        self,
        exp_name: str,
        tracking_uri: str,
        tags: Mapping[str, Any] | None = None,
        *,
        artifact_location: str | None = None,
        video_fps: int = 30,
        run_name: str | None = None,
        token: str | None = None,
        save_dir: str | Path | None = None,
        spool: Path | None = None,
        process: bool = True,
    ) -> None:
        require_library("mlflow", type(self).__name__)
        arguments = {
            "tracking_uri": tracking_uri,
            "experiment": exp_name,
            "run_name": run_name,
            "tags": dict(tags or {}),
            "artifact_location": artifact_location or _beside_a_file(tracking_uri),
            "token": token,
        }
        target = "rlcore_plugin_mlflow.log_server:MLflowLogServer"
        super().__init__(exp_name, tracking_uri, Path(save_dir or "."), target, arguments, process, spool)
        self.video_fps = video_fps

    @property
    def experiment(self) -> Any:
        """The `mlflow.entities.Run` as the server has it now; waits until it is opened.

        Raises:
            RlcoreError: it cannot be opened.
        """
        from mlflow import MlflowClient

        if not self.id:
            self.start(wait=True)
        return MlflowClient(self.log_dir).get_run(self.id)

    def log_video(self, name: str, video: Any, step: int | None = None, fps: int | None = None) -> None:
        """Spool videos as one GIF."""
        super().log_video(name, video, step, fps or self.video_fps)


def _beside_a_file(uri: str) -> str | None:
    """Return the folder for media beside a database file; MLflow's own default depends on the working directory."""
    if not uri.startswith("sqlite:///"):
        return None
    return (Path(uri.removeprefix("sqlite:///")).resolve().parent / "mlartifacts").as_uri()


def build(config: Config, context: Context) -> MLFlowLogger:
    """Return the logger of a run; by default all runs of a folder share `mlflow.db` there."""
    folder = context.run.folder
    if folder is None:
        raise ConfigError("the mlflow logger needs a run folder")
    beside = f"sqlite:///{folder.resolve().parent / 'mlflow.db'}"
    return MLFlowLogger(
        config.experiment,
        config.tracking_uri or os.environ.get("MLFLOW_TRACKING_URI") or beside,
        config.tags,
        artifact_location=config.artifact_location,
        run_name=context.run.name,
        token=config.token.reveal() if config.token else None,
        spool=spool_folder(folder.resolve(), context.name),
    )
