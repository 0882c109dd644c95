"""A folder on a web server, which can be pulled from; and how anything is fetched from one."""

from __future__ import annotations

import ipaddress
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, cast
from urllib.parse import quote, urlsplit

from rlcore.errors import ConfigError
from rlcore_plugin_share.manifest import Manifest
from rlcore_plugin_share.places.base import PIECE, Place

# a server that says nothing for so long has gone
_SECONDS: Final = 30.0


class Web(Place):
    """A folder on a web server that holds what was pushed to a folder; it is not written to."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        check_address(address)

    @contextmanager
    def open(self, name: str, begin: int = 0) -> Iterator[BinaryIO]:
        """Open a file; a server that sends all of it though a part was asked for is read up to there."""
        headers = {"Range": f"bytes={begin}-"} if begin else {}
        try:
            with get(f"{self.address.rstrip('/')}/{quote(name)}", headers) as answer:
                skipped = 0 if answer.status == HTTPStatus.PARTIAL_CONTENT else begin
                while skipped and (piece := answer.read(min(skipped, PIECE))):
                    skipped -= len(piece)
                yield cast(BinaryIO, answer)
        except urllib.error.HTTPError as error:
            if error.code in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
                raise FileNotFoundError(f"{self.address} has no {name}") from None
            raise

    def publish(self, manifest: Manifest, sources: Mapping[str, Path], overwrite: bool) -> list[str]:
        """Refuse.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(f"{self.address!r} can be pulled from and not pushed to: push to a folder, and serve that")


def check_address(address: str) -> None:
    """Refuse an address that others on the network could answer for.

    Raises:
        ConfigError: it is neither `https` nor `http` of this machine.
    """
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError as error:
        raise ConfigError(f"{address!r} is no address: {error}") from None
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))):
        raise ConfigError(f"{address!r}: only https:// is fetched, and http:// of this machine")


def get(address: str, headers: Mapping[str, str] | None = None) -> Any:
    """Ask for an address; return the answer, to be closed by the caller.

    Raises:
        ConfigError: it, or where it leads, is no address that is fetched.
        OSError: there is no answer, or one that says no.
    """
    check_address(address)
    asked = urllib.request.Request(address, headers=dict(headers or {}))
    # a proxy would answer for this machine
    direct = [urllib.request.ProxyHandler({})] if _is_loopback(urlsplit(address).hostname or "") else []
    return urllib.request.build_opener(_Redirects, *direct).open(asked, timeout=_SECONDS)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows to addresses that would be fetched themselves, and from the network never to this machine."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Return the next request."""
        check_address(newurl)
        if _is_loopback(urlsplit(newurl).hostname or "") and not _is_loopback(urlsplit(req.full_url).hostname or ""):
            raise ConfigError(f"{req.full_url} leads to {newurl}, on this machine; that is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
