"""Writes what was logged into the database of Trackio on this machine.

Trackio's own `Run` writes from a thread that drops what fails, and asks the Hugging Face hub who the user is. Its
storage raises what fails, takes the same record once, and uses no network.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import trackio
from rlcore_plugin_spool import Record
from trackio.sqlite_storage import SQLiteStorage
from trackio.utils import RESERVED_KEYS

from rlcore.loggers import values as log_values

# of the config of a run, as Trackio begins its own keys
GROUP: Final = "_Group"
CREATED: Final = "_Created"
CONTINUES: Final = "_Continues"
_MEDIA: Final = {"image": trackio.Image, "video": trackio.Video}


class TrackioLogServer:
    """A run in the database of a project of Trackio, with the environment frames as step.

    Args:
        project: its name; it is made when it is missing.
        run_name: of the run.
        group: of runs that the dashboard shows together; None for none.
    """

    def __init__(self, project: str, run_name: str, group: str | None) -> None:
        self._project = project
        self._run_name = run_name
        self._group = group
        self._about: dict[str, Any] = {}
        self._id = ""

    def connect(self, known_id: str, token: str, continues: str) -> str:
        """Open the run; the id of a new one is its token, so that no answer can be lost."""
        SQLiteStorage.init_db(self._project)
        self._id = known_id or token
        stored = SQLiteStorage.get_run_config(self._project, self._run_name, run_id=self._id) or {}
        self._about = {key: stored[key] for key in (CREATED, GROUP, CONTINUES) if key in stored}
        if not self._about:
            self._about = {CREATED: _time(time.time()), GROUP: self._group}
            self._about |= {CONTINUES: continues} if continues else {}
            self._write_config({})
        return self._id

    def send(self, records: Sequence[Record], folder: Path) -> None:
        """Write records in one transaction; one that is there already is left out."""
        for record in records:
            if record["kind"] == "hparams":
                self._write_config(record["config"])
        rows = [record for record in records if record["kind"] != "hparams"]
        if rows:
            self._write(
                [self._values(record, folder) for record in rows],
                [record["step"] for record in rows],
                timestamps=[_time(record["time"]) for record in rows],
                log_ids=[self._log_id(record) for record in rows],
            )

    def arrived(self) -> None:
        """Return None: what `send` wrote has arrived."""

    def disconnect(self) -> bool:
        """Return True: Trackio knows no end of a run."""
        return True

    def _write_config(self, config: Mapping[str, Any]) -> None:
        """Write the config by dotted names, with a row that holds nothing, without which Trackio writes none."""
        values = {
            key: value if isinstance(value, int | float) else str(value) for key, value in log_values.flat(config)
        }
        self._write([{}], [0], log_ids=[f"{self._id}-config"], config={**values, **self._about})

    def _write(self, rows: list[dict[str, Any]], steps: list[int], **further: Any) -> None:
        SQLiteStorage.bulk_log(self._project, self._run_name, rows, steps, run_id=self._id, **further)

    def _values(self, record: Record, folder: Path) -> dict[str, Any]:
        """Return a record as Trackio stores it."""
        if record["kind"] == "metrics":
            return {_key(name): float(value) for name, value in record["values"].items()}
        return {_key(record["name"]): self._shown(record, folder)}

    def _shown(self, record: Record, folder: Path) -> dict[str, Any]:
        if record["kind"] == "histogram":
            return dict(trackio.Histogram(np_histogram=(record["counts"], record["edges"]))._to_dict())
        if record["kind"] == "text":
            return dict(trackio.Markdown(record["text"])._to_dict())
        media = _MEDIA[record["kind"]](str(folder / record["file"]))
        media._save(self._project, self._run_name, record["step"])
        return dict(media._to_dict())

    def _log_id(self, record: Record) -> str:
        """Return what tells a record from all others; the same when it is sent again."""
        text = json.dumps(record, sort_keys=True).encode()
        return f"{self._id}-{hashlib.blake2b(text, digest_size=16).hexdigest()}"


def _key(name: str) -> str:
    """Return a name that is none of Trackio's own, as its `log` changes it."""
    return f"__{name}" if name in RESERVED_KEYS or name.startswith("__") else name


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
