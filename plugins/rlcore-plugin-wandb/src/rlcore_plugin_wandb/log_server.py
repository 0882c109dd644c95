"""Sends what was logged to Weights & Biases: to its server, or into its offline files."""

from __future__ import annotations

import datetime
import importlib.metadata
import logging
import os
import platform
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import wandb
from rlcore_plugin_spool import Record

from rlcore.types import Clock

log = logging.getLogger(__name__)

_SERVER: Final = "https://api.wandb.ai"
_UNCONFIRMED: Final = "unconfirmed"
_LAST_WRITES: Final = 5.0


class WandbLogServer:
    """A run of Weights & Biases; every row has the clock of the run, the step of all plots.

    Args:
        folder: around W&B's folder `wandb`.
        offline: whether no server is contacted.
        base_url: of the server.
        api_key: default: `WANDB_API_KEY`, or that of `wandb login`.
        log_env_packages: whether the versions of Python and all packages are written into the run's config.
        init: arguments of `wandb.init`.
        clock: what steps count.

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
        clock: Clock = "frames",
    ) -> None:
        self.run: Any = None
        self._folder = Path(folder)
        self._offline = offline
        self._base_url = base_url
        self._api_key = api_key
        self._log_env_packages = log_env_packages
        self._arguments = init
        self._clock = clock
        self._online = False

    def connect(self, known_id: str, token: str, continues: str) -> str:
        """Open the run; offline when there is no API key.

        Raises:
            Exception: the server does not answer.
        """
        run_id = known_id or (not continues and self._arguments.get("id")) or secrets.token_hex(4)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._wait_for_a_free_name(run_id)  # also of those that are removed next: their process may still write there
        self._remove_unconfirmed(token)
        self._online = not self._offline and self._has_key()
        self.run = self._init("online" if self._online else "offline", run_id)
        (self._place / _UNCONFIRMED).write_text(token)
        self.run.define_metric(self._clock)
        self.run.define_metric("*", step_metric=self._clock)
        if continues:
            self.run.config.update({"continues": continues}, allow_val_change=True)
        if self._log_env_packages:
            self.run.config.update({"env": _environment()}, allow_val_change=True)
        return str(self.run.id)

    def send(self, records: Sequence[Record], folder: Path) -> None:
        """Hand records to W&B's own process, one line of history for each with a step."""
        for record in records:
            if record["kind"] == "hparams":
                self.run.config.update(record["config"], allow_val_change=True)
            else:
                self.run.log({self._clock: record["step"], "_timestamp": record["time"], **_values(record, folder)})

    def arrived(self) -> int:
        """Return how many lines the server has; W&B takes records at once and sends them when it can."""
        return int(self.run.starting_step) if self._online else 0

    def disconnect(self) -> bool:
        """Finish the run, which returns when the server has all of it; what was to be online and is not stays open."""
        self.run.finish()
        if self._online or self._offline:
            (self._place / _UNCONFIRMED).unlink()
            return True
        return False

    @property
    def _place(self) -> Path:
        """The folder of W&B for this opening of the run."""
        return Path(self.run.dir).parent

    def _remove_unconfirmed(self, token: str) -> None:
        """Remove W&B's folders of openings that did not end well: what is in them is offered again.

        W&B writes in blocks, so a crash leaves a part there that nobody could tell from the whole. Other loggers may
        have theirs in the same place.
        """
        for file in (self._folder / "wandb").glob(f"*run-*/{_UNCONFIRMED}"):
            if file.read_text() == token:
                _remove(file.parent)

    def _init(self, mode: Literal["online", "offline"], run_id: str) -> Any:
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
        before = set(self._places(run_id))
        try:
            return wandb.init(**{**ours, **self._arguments, "id": run_id})
        except Exception:
            for place in set(self._places(run_id)) - before:  # one for each attempt, with nothing in it
                shutil.rmtree(place, ignore_errors=True)
            raise

    def _places(self, run_id: str) -> Iterator[Path]:
        return (self._folder / "wandb").glob(f"*run-*-{run_id}")

    def _has_key(self) -> bool:
        """Whether W&B knows an API key; without one it would ask on the terminal."""
        from requests.utils import get_netrc_auth

        server = self._base_url or os.environ.get("WANDB_BASE_URL", _SERVER)
        if self._api_key or os.environ.get("WANDB_API_KEY") or get_netrc_auth(server) is not None:
            return True
        log.warning(
            "wandb: no API key, so the run is written offline; `wandb login` once, or set WANDB_API_KEY, and then "
            "`rlcore sync RUN` sends it"
        )
        return False

    def _wait_for_a_free_name(self, run_id: str) -> None:
        """W&B names folders by the second; a run that is opened twice in one would overwrite its own files."""
        while any(datetime.datetime.now().strftime("%Y%m%d_%H%M%S") in place.name for place in self._places(run_id)):
            time.sleep(0.1)


def _remove(place: Path) -> None:
    """Remove a folder into which W&B's own process, about to end, may still write."""
    deadline = time.monotonic() + _LAST_WRITES
    while place.exists() and time.monotonic() < deadline:
        shutil.rmtree(place, ignore_errors=True)
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
