"""What a server of logs is to a sender: it is connected to, sent records, and asked what has arrived."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from rlcore_plugin_spool.records import Record


class LogServer(Protocol):
    """A server of logs, where records go.

    Every method may block, and may raise: then the same records are sent again later.

    A record is a table with `kind`, and apart from the config with `step` and `time` (seconds since 1970):

    | kind | further keys |
    | --- | --- |
    | `metrics` | `values`: number by name |
    | `histogram` | `name`, `counts`, `edges`, `not_finite` |
    | `image`, `video` | `name`, `file`: relative to the folder of the spool, and `fps` of a video |
    | `text` | `name`, `text` |
    | `hparams` | `config` |

    NaN and infinities are text, which `float()` reads.
    """

    def connect(self, known_id: str, token: str, continues: str) -> str:
        """Open a run, and return its id.

        Args:
            known_id: of the run; empty for one that is to be made.
            token: belongs to this run and no other.
            continues: id of the run that this one goes on from, where its rows could not be taken back; else empty.
        """
        ...

    def send(self, records: Sequence[Record], folder: Path) -> None:
        """Send records in order; `folder` is that of the spool."""
        ...

    def arrived(self) -> int | None:
        """Return how many records with a step the run has, once it is open; None where `send` waits until they arrive.

        Where it is a number, all that was sent since the last `disconnect` that returned True is offered again after a
        crash, less what has arrived.
        """
        ...

    def disconnect(self) -> bool:
        """End the run, when everything was sent, and return whether all of it has arrived."""
        ...


def make_log_server(target: str, arguments: Mapping[str, Any]) -> LogServer:
    """Import and build what talks to a server.

    Args:
        target: `module:Class`.
        arguments: for its constructor.
    """
    server: LogServer = pkgutil.resolve_name(target)(**arguments)
    return server
