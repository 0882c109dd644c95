"""What the server answers: the files of the page, what it shows as JSON, media of runs, and what buttons did."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from rlcore_plugin_reports import METRIC, WEB

from rlcore.errors import StorageError
from rlcore.files import read_plain
from rlcore_plugin_console.actions import Actions
from rlcore_plugin_console.catalogue import Catalogue, as_json
from rlcore_plugin_console.comparing import Comparisons
from rlcore_plugin_console.details import Details
from rlcore_plugin_console.guard import RefusedError
from rlcore_plugin_console.jobs import Jobs

_OWN: Final = Path(__file__).parent / "web"
_MOST_MEDIA_BYTES: Final = 256 << 20
_MOST_COMPARED: Final = 200
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# the page and what it is made of; what reports draw with is theirs
_FILES: Final = {
    "/": _OWN / "index.html",
    **{f"/{name}": _OWN / name for name in ("console.css", "dom.js", "runs.js", "run.js", "compare.js", "actions.js")},
    "/console.js": _OWN / "console.js",
    "/icon.svg": _OWN / "icon.svg",
    "/page.css": WEB / "page.css",
    "/charts.js": WEB / "charts.js",
    "/uPlot.css": WEB / "uplot" / "uPlot.min.css",
    "/uPlot.js": WEB / "uplot" / "uPlot.iife.min.js",
}
_TOKEN: Final = b"{{ token }}"


@dataclass(frozen=True)
class Answer:
    """An answer of the server.

    Attributes:
        content: its body.
        kind: media type.
        status: of HTTP.
        headers: besides those that every answer has.
    """

    content: bytes
    kind: str = "application/json"
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def text(cls, text: str, status: HTTPStatus) -> Answer:
        """Return a sentence."""
        return cls(text.encode("utf-8", "replace"), "text/plain; charset=utf-8", status)


class Site:
    """What there is to ask.

    Args:
        folder: with the runs, absolute.
        place: working directory of the commands.
        action_token: which the page sends with what changes something.
    """

    def __init__(self, folder: Path, place: Path, action_token: str) -> None:
        self.catalogue = Catalogue(folder)
        self.jobs = Jobs(place)
        self._token = action_token.encode()
        self._details = Details(self.catalogue)
        self._comparisons = Comparisons(self.catalogue, self._details)
        self._actions = Actions(self.catalogue, self.jobs, place)

    def get(self, path: str, fields: Mapping[str, Sequence[str]]) -> Answer:
        """Return what there is at an address.

        Raises:
            RlcoreError: there is nothing, or it cannot be read.
        """
        if path in _FILES:
            content = _read(_FILES[path])
            return Answer(content.replace(_TOKEN, self._token) if path == "/" else content, _TYPES[_FILES[path].suffix])
        runs, known = fields.get("run", []), fields.get("seen", [""])[0]
        run = runs[0] if runs else ""
        match path:
            case "/api/runs":
                return self._rows(known)
            case "/api/run":
                return _news(self._details.about(run, known))
            case "/api/curves":
                return _news(self._details.curves(run, fields.get("key", []), known))
            case "/api/compare" if len(runs) <= _MOST_COMPARED:
                return _news(self._comparisons.of(runs, fields.get("metric", [METRIC])[0], known))
            case "/media":
                return self._media(run, fields.get("file", [""])[0])
        raise RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here")

    def post(self, path: str, asked: Mapping[str, Any]) -> Answer:
        """Say what a button would do, or do it.

        Raises:
            RlcoreError: it cannot be done.
        """
        if path not in ("/api/plan", "/api/do"):
            raise RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here")
        plan = self._actions.plan(asked)
        said = ""
        if path == "/api/do":
            said = plan.do()
            self.catalogue.look_again()
        return Answer(as_json({"commands": list(plan.commands), "said": said}))

    def _rows(self, known: str) -> Answer:
        """Return what is new in the list, with the trainings that were begun here."""
        version, _, jobs_known = known.partition("~")
        jobs = self.jobs.rows()
        jobs_version = str(hash(tuple((job["number"], job["state"], job["said"]) for job in jobs)))
        news = self.catalogue.rows(version)
        if news is None and jobs_version == jobs_known:
            return Answer(b"", status=HTTPStatus.NO_CONTENT)
        content = {**(news or {"version": version}), "jobs": jobs, "now": int(time.time() * 1000)}
        content["version"] = f"{content['version']}~{jobs_version}"
        return Answer(as_json(content))

    def _media(self, run: str, name: str) -> Answer:
        files = self._details.media(run)
        if name not in files:
            raise RefusedError(HTTPStatus.NOT_FOUND, "the run has no such image or video any more")
        file, kind = files[name]
        try:
            return Answer(read_plain(file, _MOST_MEDIA_BYTES), kind)
        except (OSError, StorageError) as error:
            raise RefusedError(HTTPStatus.NOT_FOUND, f"{file.name} cannot be read: {error}") from error


def _news(content: dict[str, Any] | None) -> Answer:
    return Answer(b"", status=HTTPStatus.NO_CONTENT) if content is None else Answer(as_json(content))


@cache
def _read(file: Path) -> bytes:
    return file.read_bytes()
