"""Sends what was logged to MLflow: to its tracking server, or into a database file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from mlflow import MlflowClient
from mlflow.entities import Metric, Param
from mlflow.exceptions import MlflowException
from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID
from rlcore_plugin_spool import Record

from rlcore.loggers import values as log_values

Entry = TypeVar("Entry")

# on the server since the first version, whatever the modules are called
TOKEN_TAG: Final = "rlcore.spool"
_METRICS_PER_CALL: Final = 1000
_PARAMS_PER_CALL: Final = 100
_LONGEST_PARAM: Final = 6000
# a request that fails is tried again from the spool, so that the client need not do so for minutes
_PATIENCE: Final = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}


class MLflowLogServer:
    """A run of MLflow, with the environment frames as step.

    Args:
        tracking_uri: a server or a database.
        experiment: its name; it is made when it is missing.
        run_name: of a new run; default: MLflow makes one.
        tags: of a new run.
        artifact_location: where a new experiment keeps media.
        token: bearer token of the server.
    """

    def __init__(
        self,
        tracking_uri: str,
        experiment: str,
        run_name: str | None,
        tags: Mapping[str, Any],
        artifact_location: str | None,
        token: str | None,
    ) -> None:
        for name, value in _PATIENCE.items():
            os.environ.setdefault(name, value)
        if token:
            os.environ["MLFLOW_TRACKING_TOKEN"] = token
        self._uri = tracking_uri
        self._experiment = experiment
        self._run_name = run_name
        self._tags = dict(tags)
        self._artifact_location = artifact_location
        self._client: Any = None
        self._id = ""
        self._uncertain = False

    def connect(self, known_id: str, token: str, continues: str) -> str:
        """Open the run, or make it, below the one that it continues."""
        client = MlflowClient(self._uri)
        experiment = self._experiment_id(client)
        self._id = known_id or _lost_run(client, experiment, token)
        self._uncertain = bool(self._id)
        if self._id:
            client.update_run(self._id, status="RUNNING")
        else:
            link = {MLFLOW_PARENT_RUN_ID: continues} if continues else {}
            tags = {**self._tags, TOKEN_TAG: token, **link}
            self._id = client.create_run(experiment, run_name=self._run_name, tags=tags).info.run_id
        self._client = client
        return self._id

    def send(self, records: Sequence[Record], folder: Path) -> None:
        """Send records; many rows of metrics make one request."""
        metrics = [metric for record in records if record["kind"] == "metrics" for metric in _metrics(record)]
        if self._uncertain:
            metrics = self._without_known(metrics)
        for some in _parts(metrics, _METRICS_PER_CALL):
            self._client.log_batch(self._id, metrics=some)
        self._uncertain = False
        for record in records:
            if record["kind"] == "hparams":
                self._send_params(record["config"])
            elif record["kind"] != "metrics":
                self._send_artifact(record, folder)

    def arrived(self) -> None:
        """Return None: every request is answered when it has arrived."""

    def disconnect(self) -> bool:
        """Say that the run is finished."""
        self._client.set_terminated(self._id)
        return True

    def _experiment_id(self, client: MlflowClient) -> str:
        experiment = client.get_experiment_by_name(self._experiment)
        if experiment is None:
            try:
                return str(client.create_experiment(self._experiment, artifact_location=self._artifact_location))
            except MlflowException:  # another run was faster
                experiment = client.get_experiment_by_name(self._experiment)
                if experiment is None:
                    raise
        return str(experiment.experiment_id)

    def _without_known(self, metrics: Sequence[Metric]) -> list[Metric]:
        """Leave out what the server took before its answer was lost."""
        steps: dict[str, set[int]] = {}
        for key in {metric.key for metric in metrics}:
            steps[key] = {metric.step for metric in self._client.get_metric_history(self._id, key)}
        return [metric for metric in metrics if metric.step not in steps[metric.key]]

    def _send_params(self, config: Mapping[str, Any]) -> None:
        """Send the config as parameters, which MLflow never changes, and as a file, which shows the latest."""
        sent = self._client.get_run(self._id).data.params
        values = {_key(key): str(value)[:_LONGEST_PARAM] for key, value in log_values.flat(config)}
        fresh = [Param(key, value) for key, value in values.items() if key not in sent]
        for some in _parts(fresh, _PARAMS_PER_CALL):
            self._client.log_batch(self._id, params=some)
        self._client.log_dict(self._id, dict(config), "config.json")

    def _send_artifact(self, record: Record, folder: Path) -> None:
        place, step = f"{record['kind']}s/{_key(record['name'])}", f"{record['step']:012d}"
        if record["kind"] == "histogram":
            content = {key: record[key] for key in ("counts", "edges", "not_finite")}
            self._client.log_dict(self._id, content, f"{place}/{step}.json")
        elif record["kind"] == "text":
            self._client.log_text(self._id, record["text"], f"{place}/{step}.txt")
        else:
            self._client.log_artifact(self._id, str(folder / record["file"]), place)


def _lost_run(client: MlflowClient, experiment: str, token: str) -> str:
    """Return the id of a run that was made for this spool, whose id did not arrive; else nothing."""
    runs = client.search_runs([experiment], f"tags.`{TOKEN_TAG}` = '{token}'", max_results=1)
    return str(runs[0].info.run_id) if runs else ""


def _parts(entries: Sequence[Entry], size: int) -> Iterator[Sequence[Entry]]:
    for begin in range(0, len(entries), size):
        yield entries[begin : begin + size]


def _metrics(record: Record) -> Iterable[Metric]:
    time = int(1000 * record["time"])
    return (Metric(_key(key), float(value), time, record["step"]) for key, value in record["values"].items())


def _key(name: str) -> str:
    """Return a name that MLflow takes: it refuses other characters, and what would be another name as a path."""
    parts = [re.sub(r"[^\w.\- :]", "_", part) for part in name.split("/")]
    return "/".join(part if part.strip(".") else "_" for part in parts)
