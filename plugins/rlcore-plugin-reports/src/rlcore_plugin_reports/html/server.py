"""The page of runs that go on, from a server for this machine alone: `rlcore report --watch`."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import xxhash

from rlcore.errors import ConfigError, RlcoreError
from rlcore_plugin_reports.html.page import news, page, run_files
from rlcore_plugin_reports.run_files import RunFiles

ADDRESS: Final = "127.0.0.1"
POLL_SECONDS: Final = 2.0
# of the time between two looks at the runs, what a look may take
_MOST_BUSY: Final = 0.1
_READ: Final = ("config.toml", "status.json", "metrics.csv", "evaluations.csv", "timings.csv", "checkpoints")


class Watched:
    """Runs that are looked at again when their files changed, and seldom where that takes long.

    Args:
        folders: of the runs.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._lock = threading.Lock()
        self._version = self._answer = ""
        self._next_look = 0.0

    def page(self) -> str:
        """Return the whole page.

        Raises:
            ConfigError: a folder is none of a run any more.
        """
        return page(run_files(self._folders), poll_seconds=POLL_SECONDS)

    def news(self, seen: str) -> str:
        """Return what changes while runs go on, as JSON; empty where a reader has seen it.

        Args:
            seen: `version` of what the reader got last.

        Raises:
            ConfigError: a folder is none of a run any more.
        """
        with self._lock:
            if time.monotonic() >= self._next_look:
                self._look()
            return "" if self._version == seen else self._answer

    def _look(self) -> None:
        begin = time.monotonic()
        runs = run_files(self._folders)
        version = xxhash.xxh64_hexdigest(repr([_signs(run) for run in runs]).encode())
        if version != self._version:
            self._answer = json.dumps({"version": version, **news(runs)}, allow_nan=False)
            self._version = version
        end = time.monotonic()
        self._next_look = end + (end - begin) / _MOST_BUSY


def _signs(run: RunFiles) -> list[Any]:
    """Return what is another when something of a run is."""
    signs: list[Any] = [run.status]
    for name in _READ:
        try:
            found = (run.folder / name).stat()
            signs.append((found.st_mtime_ns, found.st_size))
        except OSError:
            signs.append(None)
    return signs


class Server(ThreadingHTTPServer):
    """Answers browsers of this machine.

    Args:
        folders: of the runs.
        port: 0 for any that is free.

    Raises:
        ConfigError: a folder is none of a run, or the port cannot be had.
    """

    daemon_threads = True

    def __init__(self, folders: Sequence[Path], port: int) -> None:
        run_files(folders)
        self.watched = Watched(folders)
        try:
            super().__init__((ADDRESS, port), _Answers)
        except OSError as error:
            raise ConfigError(f"port {port} cannot be had: {error}; choose another --port, or 0 for any") from error

    @property
    def url(self) -> str:
        """Where a browser finds the page."""
        return f"http://{ADDRESS}:{self.server_address[1]}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names by which browsers may ask: a page of another place that leads its name here gets nothing."""
        return tuple(f"{name}:{self.server_address[1]}" for name in (ADDRESS, "localhost"))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Let a browser go that has gone away; tell of everything else."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Answers(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        """Answer with the page or with what is new."""
        asked = urlsplit(self.path)
        if self.headers.get("Host") not in self.server.hosts:
            self._send(HTTPStatus.FORBIDDEN, "text/plain", "this server is for browsers of its own machine")
        elif asked.path == "/":
            self._made("text/html", self.server.watched.page)
        elif asked.path == "/data.json":
            seen = parse_qs(asked.query).get("seen", [""])[0]
            self._made("application/json", lambda: self.server.watched.news(seen))
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "there is nothing here but /")

    def _made(self, kind: str, make: Callable[[], str]) -> None:
        try:
            text = make()
        except RlcoreError as error:
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", str(error))
            return
        self._send(HTTPStatus.OK if text else HTTPStatus.NO_CONTENT, kind, text)

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        content = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each request."""
