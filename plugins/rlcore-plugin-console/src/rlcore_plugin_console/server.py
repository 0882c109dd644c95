"""The server: requests, limits and answers. What an answer says is made in `site.py`."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from rlcore.errors import ConfigError, RlcoreError
from rlcore_plugin_console.guard import HEADERS, Guard, RefusedError
from rlcore_plugin_console.site import Answer, Site

LOOPBACK: Final = "127.0.0.1"
_MOST_BODY_BYTES: Final = 64_000
_MOST_FIELDS: Final = 500
_MOST_CONNECTIONS: Final = 64
# for a whole request to arrive, however slowly its bytes come
_REQUEST_SECONDS: Final = 10.0
# for the socket to take or bring anything at all
_SILENT_SECONDS: Final = 30.0


class Server(ThreadingHTTPServer):
    """Answers browsers of this machine, and of others if asked to.

    Args:
        folder: with the runs, absolute.
        place: working directory of the commands.
        port: 0 for any that is free.
        host: the address to listen at.
        remote: whether other machines may ask.

    Raises:
        ConfigError: the address or the port cannot be had.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, folder: Path, place: Path, port: int, host: str = LOOPBACK, remote: bool = False) -> None:
        try:
            super().__init__((host, port), _Requests)
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"port {port} of {host} cannot be had: {error}; choose another --port, or 0 for any"
            ) from error
        self._host = host
        self.guard = Guard(self.server_port, remote)
        self.site = Site(folder, place, self.guard.action_token)
        self._reading: dict[socket.socket, float] = {}
        self._reading_lock = threading.Lock()
        self._room = threading.BoundedSemaphore(_MOST_CONNECTIONS)

    @property
    def url(self) -> str:
        """Where a browser of this machine finds the console, with the token."""
        name = LOOPBACK if self._host in ("0.0.0.0", "") else self._host
        return f"http://{name}:{self.server_port}/?token={self.guard.token}"

    def service_actions(self) -> None:
        """Close the connections whose requests take too long to arrive, and begin what waits in line."""
        now = time.monotonic()
        with self._reading_lock:
            overdue = [connection for connection, deadline in self._reading.items() if deadline < now]
        for connection in overdue:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it has gone already
        self.site.jobs.advance()

    def begin_reading(self, connection: socket.socket) -> None:
        """Let the time run in which a request has to arrive."""
        with self._reading_lock:
            self._reading[connection] = time.monotonic() + _REQUEST_SECONDS

    def end_reading(self, connection: socket.socket) -> None:
        """Say that the request has arrived, or never will."""
        with self._reading_lock:
            self._reading.pop(connection, None)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, or not at all where there are too many."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room for another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.end_reading(request)
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Let a browser go that has gone away; tell of everything else."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Requests(BaseHTTPRequestHandler):
    server: Server
    timeout = _SILENT_SECONDS
    server_version = "rlcore"
    sys_version = ""

    def setup(self) -> None:
        """Let the time of the request run."""
        super().setup()
        self.server.begin_reading(self.connection)

    def do_GET(self) -> None:
        """Answer what changes nothing."""
        self._answered(self._get)

    def do_POST(self) -> None:
        """Answer what may change something."""
        self._answered(self._post)

    def _get(self) -> Answer:
        try:
            asked = urlsplit(self.path)
            fields = parse_qs(asked.query, max_num_fields=_MOST_FIELDS)
        except ValueError as error:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "this address is none") from error
        token = fields.get("token", [""])[0]
        if asked.path == "/" and token:
            self.server.guard.check_place(self.headers)
            if self.server.guard.is_token(token):
                # the token leaves the address bar and what a browser remembers of it
                headers = {"Location": "/", "Set-Cookie": self.server.guard.cookie()}
                return Answer(b"", "text/plain", HTTPStatus.SEE_OTHER, headers)
        self.server.guard.check(self.headers, is_post=False)
        return self.server.site.get(asked.path, fields)

    def _post(self) -> Answer:
        self.server.guard.check(self.headers, is_post=True)
        if self.headers.get_content_type() != "application/json":
            raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "what is asked is JSON")
        length = self.headers.get("Content-Length", "")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdecimal()):
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "the length of the request is not said")
        if len(length) > 9 or int(length) > _MOST_BODY_BYTES:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {_MOST_BODY_BYTES:,} bytes")
        body = self.rfile.read(int(length))
        self.server.end_reading(self.connection)
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "what is asked is no JSON") from error
        if not isinstance(asked, dict):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "what is asked is no object")
        return self.server.site.post(self.path, asked)

    def _answered(self, make: Callable[[], Answer]) -> None:
        if self.command == "GET":
            self.server.end_reading(self.connection)
        try:
            answer = make()
        except RefusedError as error:
            answer = Answer.text(str(error), error.status)
        except RlcoreError as error:
            answer = Answer.text(str(error), HTTPStatus.UNPROCESSABLE_ENTITY)
        except Exception:
            traceback.print_exc()  # for whoever started the server, and for nobody else
            said = "an error that rlcore did not expect; its terminal says more"
            answer = Answer.text(said, HTTPStatus.INTERNAL_SERVER_ERROR)
        self.send_response(answer.status)
        for name, value in {**HEADERS, **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no request, with no word of it in the answer."""
        self._answered(lambda: Answer.text(HTTPStatus(code).phrase, HTTPStatus(code)))

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each request."""
