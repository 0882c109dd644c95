"""Sends what was logged to Weights & Biases: to its server, or into its offline files."""

from __future__ import annotations

import datetime
import importlib.metadata
import logging
import os
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import wandb

from rlcore.spool import Record

log = logging.getLogger(__name__)

STEP: Final = "frames"
_SERVER: Final = "https://api.wandb.ai"


class WandbBackend:
    """A run of Weights & Biases; every row has the environment frames as `frames`, the step of all plots.

    Args:
        folder: around W&B's folder `wandb`.
        offline: whether no server is contacted.
        base_url: of the server.
        api_key: default: `WANDB_API_KEY`, or that of `wandb login`.
        log_env_packages: whether the versions of Python and all packages are written into the run's config.
        init: arguments of `wandb.init`.

    Attributes:
        run: the `wandb.Run`, once it is open.
    """

    def __init__(
        self,
        folder: str,
        offline: bool,
        base_url: str | None,
        api_key: str | None,
        log_env_packages: bool,
        init: Mapping[str, Any],
    ) -> None:
        self.run: Any = None
        self._folder = Path(folder)
        self._offline = offline
        self._base_url = base_url
        self._api_key = api_key
        self._log_env_packages = log_env_packages
        self._arguments = init

    def connect(self, known_id: str, token: str, continues: str) -> str:
        """Open the run; offline when there is no API key or the server does not answer."""
        run_id = known_id or (None if continues else self._arguments.get("id"))
        self._folder.mkdir(parents=True, exist_ok=True)
        self.run = None if self._offline else self._init_online(run_id)
        if self.run is None:
            self._wait_for_a_free_name(run_id)
            self.run = self._init("offline", run_id)
        self.run.define_metric(STEP)
        self.run.define_metric("*", step_metric=STEP)
        if continues:
            self.run.config.update({"continues": continues}, allow_val_change=True)
        if self._log_env_packages:
            self.run.config.update({"env": _environment()}, allow_val_change=True)
        return str(self.run.id)

    def send(self, records: Sequence[Record], folder: Path) -> None:
        """Hand records to W&B's own process."""
        for record in records:
            if record["kind"] == "hparams":
                self.run.config.update(record["config"], allow_val_change=True)
            else:
                self.run.log({STEP: record["step"], "_timestamp": record["time"], **_values(record, folder)})

    def disconnect(self) -> None:
        """Finish the run."""
        self.run.finish()

    def _init_online(self, run_id: str | None) -> Any:
        """Return the run, or None when it has to be written offline."""
        if not self._has_key():
            log.warning("wandb: no API key, so the run is written offline; `wandb login` once, or set WANDB_API_KEY")
            return None
        try:
            return self._init("online", run_id)
        except Exception as error:
            log.warning(
                "wandb: the server cannot be reached (%s), so the run is written offline; send it later with "
                "`wandb sync %s/wandb/offline-run-*`",
                *(str(error).partition("\n")[0], self._folder),
            )
            return None

    def _init(self, mode: Literal["online", "offline"], run_id: str | None) -> Any:
        settings = wandb.Settings(
            console="off",  # W&B would read what the process prints
            silent=True,
            disable_git=True,
            save_code=False,
            x_disable_stats=True,
            init_timeout=20,
        )
        if self._base_url:
            settings.base_url = self._base_url
        if self._api_key:
            settings.api_key = self._api_key
        ours = {"dir": str(self._folder), "mode": mode, "resume": "allow", "reinit": "create_new", "settings": settings}
        return wandb.init(**{**ours, **self._arguments, "id": run_id})

    def _has_key(self) -> bool:
        """Whether W&B knows an API key; without one it would ask on the terminal."""
        if self._api_key or os.environ.get("WANDB_API_KEY"):
            return True
        from requests.utils import get_netrc_auth

        return get_netrc_auth(self._base_url or os.environ.get("WANDB_BASE_URL", _SERVER)) is not None

    def _wait_for_a_free_name(self, run_id: str | None) -> None:
        """W&B names offline folders by the second; a run that is opened twice in one would overwrite its own files."""
        while run_id:
            now = datetime.datetime.now().strftime("%Y%m%d_%H%M%S")
            if not (self._folder / "wandb" / f"offline-run-{now}-{run_id}").exists():
                return
            time.sleep(0.1)


def _values(record: Record, folder: Path) -> Mapping[str, Any]:
    kind = record["kind"]
    if kind == "metrics":
        return {key: float(value) for key, value in record["values"].items()}
    if kind == "histogram":
        bins = np.asarray(record["counts"]), np.asarray(record["edges"], dtype=np.float64)
        return {record["name"]: wandb.Histogram(np_histogram=bins)}
    if kind == "text":
        return {record["name"]: record["text"]}
    file = str(folder / record["file"])
    if kind == "video":
        return {record["name"]: wandb.Video(file, format="gif")}
    return {record["name"]: wandb.Image(file)}


def _environment() -> dict[str, Any]:
    packages = {dist.name: dist.version for dist in importlib.metadata.distributions()}
    return {"python": platform.python_version(), "packages": dict(sorted(packages.items()))}
