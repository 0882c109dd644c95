"""A console over recorded runs, on a real socket."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from rlcore_plugin_console.guard import ACTION_HEADER
from rlcore_plugin_console.server import Server

Answered = tuple[int, dict[str, str], bytes]
RECORDED = Path(__file__).parents[2] / "rlcore-plugin-reports" / "tests" / "recorded" / "cartpole"


class Console:
    """A server in a thread, and what a page asks it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = Server(folder, folder, 0)
        self.port = self.server.server_address[1]
        self.headers = {"Authorization": f"Bearer {self.server.guard.token}"}
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answered:
        """Return status, headers and content of an answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        named = dict(headers)
        connection.putrequest(method, path, skip_host="Host" in named, skip_accept_encoding=True)
        if body is not None and not {"Content-Length", "Transfer-Encoding"} & named.keys():
            named["Content-Length"] = str(len(body))
        for name, value in named.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content

    def get(self, path: str) -> Any:
        """Return the JSON at an address; None where there is no news."""
        status, _, content = self.ask("GET", path, **self.headers)
        assert status in (200, 204), content
        return json.loads(content) if content else None

    def post(self, path: str, asked: Any, **headers: str) -> tuple[int, Any]:
        """Return status and JSON, or text, of what a button gets."""
        _, _, page = self.ask("GET", "/", **self.headers)
        token = re.search(rb'rlcore-token" content="(\w+)"', page)
        assert token is not None
        mine = {**self.headers, ACTION_HEADER: token[1].decode(), "Content-Type": "application/json"}
        status, _, content = self.ask("POST", path, json.dumps(asked).encode(), **{**mine, **headers})
        return status, json.loads(content) if status == 200 else content.decode()

    def close(self) -> None:
        """End the server."""
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Return a folder with four recorded runs of two settings."""
    folder = tmp_path / "runs"
    for name in ("lr1e-3-seed-1", "lr1e-3-seed-2", "lr2.5e-4-seed-1", "lr2.5e-4-seed-2"):
        shutil.copytree(RECORDED / name, folder / name)
    return folder


@pytest.fixture
def console(runs: Path) -> Iterator[Console]:
    """Yield a console over the recorded runs."""
    made = Console(runs)
    yield made
    made.close()
