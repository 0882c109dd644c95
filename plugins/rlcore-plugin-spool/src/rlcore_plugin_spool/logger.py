"""The base of loggers that talk to a server: what is logged goes to a spool on disk, and a sender takes it on."""

from __future__ import annotations

import atexit
import importlib.util
import logging
import os
import secrets
import shlex
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rlcore.errors import MissingPluginError, RlcoreError
from rlcore.files import inside
from rlcore.loggers import Logger, media
from rlcore.loggers import values as log_values
from rlcore_plugin_spool.log_server import LogServer
from rlcore_plugin_spool.records import Record
from rlcore_plugin_spool.running import SenderProcess, SenderThread
from rlcore_plugin_spool.sender import CLOSING, LINGER, lock_spool
from rlcore_plugin_spool.spool import Spool

log = logging.getLogger(__name__)

FOLDER: Final = "spool"
# seconds that a resume waits for the sender of the run before, which may still be importing its library
_LETS_GO: Final = 20.0


class SpoolingLogger(Logger):
    """A logger whose calls only write to disk; a sender takes the records to the server when that answers, each once.

    A subclass says which `LogServer` that is.

    Args:
        exp_name: name of the experiment.
        log_dir: where the server's data or the server is.
        save_dir: the folder around `spool/`.
        server: `module:Class` of what talks to the server.
        arguments: for its constructor; what JSON can hold, if the sender is a process.
        process: whether the sender is a process of its own, which keeps the server's library away from this one; else
            it is a thread. Also an attribute, which counts at the start.
        spool: folder of the spool; default: one of this logger alone, `spool/EXP_NAME-…` below `save_dir`, and a resume
            goes on in the one beside it that the checkpoint names.

    Attributes:
        destination: where records are sent, for people.
    """

    def __init__(
        self,
        exp_name: str,
        log_dir: str,
        save_dir: Path,
        server: str,
        arguments: Mapping[str, Any],
        process: bool,
        spool: Path | None = None,
    ) -> None:
        super().__init__(exp_name, log_dir)
        self.destination = log_dir
        self.spool = Spool(spool or _own_folder(save_dir, exp_name))
        self._own = spool is None
        # for messages: its name, and what sends the rest; a run has the spool of a section in `spool/NAME`
        self._name, self._sends = exp_name, "a logger with that `spool`"
        if spool is not None and spool.parent.name == FOLDER:
            place = os.path.relpath(spool.parents[1])
            self._name, self._sends = spool.name, f"`rlcore sync {shlex.quote(place)}`"
        self._server_target = server
        self._arguments = dict(arguments)
        self.process = process
        self._sender: SenderThread | SenderProcess | None = None
        self._contact = threading.Condition()
        self._connected = False
        self._error = ""

    @property
    def id(self) -> str:
        """Of the run on the server; empty before the first contact."""
        self.spool.refresh()
        return self.spool.sent.id

    @property
    def error(self) -> str:
        """Why nothing can be sent at the moment; empty when nothing stands in the way."""
        return self._error

    @property
    def unsent(self) -> int:  # type: ignore[override]
        """How many records wait on disk; of a closed logger, also those of which nobody knows that they arrived."""
        return self.spool.count() + (self.spool.unconfirmed if self._sender is None else 0)

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None, keys_sep: str = "/") -> dict[str, float]:
        """Spool scalars of one step."""
        row = log_values.row(metrics, keys_sep)
        self._append({"kind": "metrics", "values": row}, "", step)
        return row

    def log_histogram(self, name: str, data: Any, step: int | None = None, bins: log_values.Bins = None) -> None:
        """Spool a histogram."""
        counted = log_values.histogram(data, bins)
        counts, edges = counted.counts.tolist(), counted.edges.tolist()
        record = {"kind": "histogram", "counts": counts, "edges": edges, "not_finite": counted.not_finite}
        self._append(record, name, step)

    def log_image(self, name: str, image: Any, step: int | None = None) -> None:
        """Spool an image as PNG."""
        self._append_file({"kind": "image"}, name, step, ".png", media.png(image))

    def log_video(self, name: str, video: Any, step: int | None = None, fps: int = 30) -> None:
        """Spool videos as one GIF."""
        self._append_file({"kind": "video", "fps": fps}, name, step, ".gif", media.gif(video, fps))

    def log_text(self, name: str, text: str, step: int | None = None) -> None:
        """Spool a text."""
        self._append({"kind": "text", "text": text}, name, step)

    def log_hparams(self, config: Mapping[str, Any]) -> None:
        """Spool the config."""
        self._spool({"kind": "hparams", "config": config})

    def start(self, wait: bool = False) -> None:
        """Start the sender.

        Args:
            wait: return only when the server answered.

        Raises:
            RlcoreError: the first attempt failed, and `wait` is true.
        """
        if self._own and not wait and not self.spool.waiting:
            return  # a resume may still name the spool that it goes on with
        if self._sender is None:
            self.spool.write_sent()  # the sender reads it
            self._connected, self._error = False, ""
            make = SenderProcess if self.process else SenderThread
            self._sender = make(self.spool, self._server_target, self._arguments, self._hear)
            atexit.register(self.close)
        if wait:
            with self._contact:
                self._contact.wait_for(lambda: self._connected or self._error)
            if not self._connected:
                raise RlcoreError(self._error)

    def log_server(self) -> LogServer | None:
        """Return what talks to the server, once that answered; None where a process of its own does.

        Raises:
            RlcoreError: it does not answer.
        """
        self.start(wait=True)
        return None if self._sender is None else self._sender.server

    def flush(self) -> None:
        """Hand what was logged to the system; nothing waits for the server."""
        self.spool.flush()

    def catch_up(self, seconds: float) -> bool:
        """Wait until everything is sent, and return whether it is."""
        self.start()
        assert self._sender is not None
        self._sender.hurry()
        deadline = time.monotonic() + seconds
        while self.spool.waiting and time.monotonic() < deadline:
            time.sleep(0.02)
        return not self.spool.waiting

    def close(self) -> None:
        """Flush, give the server ten seconds to take the rest, and stop sending.

        A process goes on by itself for a minute; it is not waited for when the server is known not to answer.
        """
        self.spool.close()
        if self._sender is None:
            return
        goes_on = self._sender.close(0 if self.process and self._error else CLOSING)
        self._sender = None
        atexit.unregister(self.close)
        if self.unsent:
            goes_on = goes_on and not self._error
            log.warning(
                "%d records of logger %r have not arrived%s%s; they wait in %s, and %s sends what is missing",
                *(self.unsent, self._name, " yet" if goes_on else ", as far as is known"),
                f", and a process sends them for {LINGER:.0f} s more"
                if goes_on
                else self._error and f" ({self._error})",
                *(self.spool.folder, self._sends),
            )

    def files(self) -> list[Path]:
        """Return the file of the records."""
        return [self.spool.file]

    def state_dict(self) -> dict[str, Any]:
        """Return how much was logged, the id of the run on the server, and the name of the spool."""
        return {**self.spool.position, "id": self.id, "spool": self.spool.folder.name}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back; what was sent after the checkpoint stays on the server, and is not sent a second time.

        Raises:
            ConfigError: another process sends the spool.
            StorageError: the state names a spool that is none.
        """
        if self._own:
            self._go_to(state.get("spool", self.exp_name))  # once, all loggers of a name had one spool
        self.spool.folder.mkdir(parents=True, exist_ok=True)
        lock = lock_spool(self.spool.folder, _LETS_GO)
        try:
            self.spool.refresh()
            if difference := self.spool.cut(state["size"], state.get("xxh3")):
                self._differs(difference)
            self.spool.adopt(state["id"])
        finally:
            lock.release()

    def begin_anew(self) -> None:
        """Go back to the beginning; what was sent stays on the server, and is not sent a second time."""
        if self.spool.folder.is_dir():
            self.load_state_dict({"size": 0, "id": "", "spool": self.spool.folder.name})

    def _go_to(self, name: str) -> None:
        """Go on with another spool beside this one, where there is one of that name."""
        place = inside(self.spool.folder.parent, name)
        if place == self.spool.folder or not place.is_dir():
            return
        if self._sender is not None:
            self._sender.close(CLOSING)
            self._sender = None
        self.spool.close()
        self.spool = Spool(place)

    def branch(self) -> None:
        """Go on in a run of its own, linked to the one before, if that was sent something after the position."""
        self.spool.branch()

    def _append(self, record: Record, name: str, step: int | None, files: Mapping[str, bytes] | None = None) -> None:
        named = {"name": log_values.name(name)} if name else {}
        self._spool({**record, **named, "step": self.step_of(name, step), "time": time.time()}, files)

    def _append_file(self, record: Record, name: str, step: int | None, suffix: str, content: bytes) -> None:
        step = self.step_of(name, step)
        file = f"{record['kind']}s/{media.file_name(name)}/{step:012d}{suffix}"
        self._append({**record, "file": file}, name, step, {file: content})

    def _spool(self, record: Record, files: Mapping[str, bytes] | None = None) -> None:
        self.spool.append(record, files)
        self.start()
        if self._sender is not None:
            self._sender.tell()

    def _hear(self, event: str, text: str) -> None:
        """Take in a report of the sender."""
        if event == "warning":
            log.warning("%s", text)
            return
        with self._contact:
            earlier_error = self._error
            self._connected, self._error = event == "connected", text
            self._contact.notify_all()
        name = f"{type(self).__name__} {self._name!r}"
        if text and not earlier_error:
            log.warning("%s: %s; what is logged waits on disk", name, text)
        elif earlier_error and not text:
            log.warning("%s is connected again", name)


def require_library(name: str, logger: str) -> None:
    """Find out, without importing it, whether the library of a server is here.

    Raises:
        PluginError: it is not.
    """
    if importlib.util.find_spec(name) is None:
        raise MissingPluginError(f"{logger} needs {name}, which is not installed: pip install {name}")


def spool_folder(run_folder: Path, name: str) -> Path:
    """Return the folder of the spool of a logger instance of a run.

    Raises:
        StorageError: it would not be inside of the run folder.
    """
    return inside(run_folder, f"{FOLDER}/{name}")


def _own_folder(save_dir: Path, exp_name: str) -> Path:
    """Return a folder for the spool of one logger of a script, which no other logger has, also of the same name."""
    name = media.file_name(exp_name).replace("/", "_")
    return save_dir / FOLDER / f"{name}-{secrets.token_hex(4)}"
