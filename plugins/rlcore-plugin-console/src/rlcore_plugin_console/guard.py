"""Who may ask the server: those who have its token, by a name of this machine, and from no page of another place."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from email.message import Message
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import Final

ACTION_HEADER: Final = "X-Rlcore-Token"
_LOOPBACK: Final = ("127.0.0.1", "localhost")

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for "
        "'script'; trusted-types 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class RefusedError(Exception):
    """A request that is not answered.

    Args:
        status: of the answer.
        why: in a sentence for whoever asked.
    """

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class Guard:
    """The token of a server and the names by which it may be asked.

    Args:
        port: of the server.
        remote: whether other machines may ask.
    """

    def __init__(self, port: int, remote: bool) -> None:
        self.token = secrets.token_urlsafe(32)
        # for requests that change something; a page reads it, and no other place can
        self.action_token = hmac.new(self.token.encode(), b"actions", "sha256").hexdigest()
        self._port = port
        self._remote = remote
        # cookies are of a machine and not of a port
        self._cookie = f"rlcore-console-{port}"

    def check(self, headers: Message, is_post: bool) -> None:
        """See that a request comes by a name of this server, from a page of its own, with its token.

        Raises:
            RefusedError: it does not.
        """
        self.check_place(headers)
        if not self._has_token(headers):
            raise RefusedError(
                HTTPStatus.UNAUTHORIZED, "open the address that rlcore serve has printed; it holds a token"
            )
        if is_post and not _same(headers.get(ACTION_HEADER, ""), self.action_token):
            raise RefusedError(HTTPStatus.FORBIDDEN, f"the header {ACTION_HEADER} is missing, or of an earlier server")

    def check_place(self, headers: Message) -> None:
        """See that a request comes by a name of this server and from no page of another place.

        Raises:
            RefusedError: it does not.
        """
        host = headers.get("Host", "")
        if not self._is_ours(host):
            raise RefusedError(HTTPStatus.FORBIDDEN, "this server is for browsers of its own machine")
        origin = headers.get("Origin")
        if origin is not None and origin != f"http://{host}":
            raise RefusedError(HTTPStatus.FORBIDDEN, "a page of another place has asked")
        if headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise RefusedError(HTTPStatus.FORBIDDEN, "a page of another place has asked")

    def is_token(self, text: str) -> bool:
        """Return whether a text is the token."""
        return _same(text, self.token)

    def cookie(self) -> str:
        """Return the cookie by which a browser keeps the token."""
        return f"{self._cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"

    def _has_token(self, headers: Message) -> bool:
        scheme, _, bearer = headers.get("Authorization", "").partition(" ")
        if scheme == "Bearer":
            return self.is_token(bearer)
        try:
            cookie = SimpleCookie(headers.get("Cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return cookie is not None and self.is_token(cookie.value)

    def _is_ours(self, host: str) -> bool:
        """Return whether a browser asked by a name that nobody else can lead here: of loopback, or an address."""
        name, _, port = host.rpartition(":")
        if port != str(self._port):
            return False
        if name in _LOOPBACK or not self._remote:
            return name in _LOOPBACK
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return name == socket.gethostname()
        return True


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())
