"""Plain answers over HTTP, and the headers that every one of them carries.

The server answers a request with a page of its own or with one line of text; whatever it is, a
browser is told to run nothing but what came from here. This module knows no files and no sockets,
and no clock: whoever sends a reply adds the Date.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from voiceloop.server.access import Refused

_FIXED = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Permissions-Policy", "microphone=(self), camera=(), geolocation=(), display-capture=()"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    # A browser asks again each time, and hears 304: a page and its scripts are always of one kind.
    ("Cache-Control", "no-cache"),
    # What websockets does after every answer that opens no socket.
    ("Connection", "close"),
)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that opens no socket."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""

    @property
    def phrase(self) -> str:
        """The words beside the status code."""
        return HTTPStatus(self.status).phrase


def reply(
    status: int,
    body: bytes,
    kind: str,
    *,
    host: str | None = None,
    more: tuple[tuple[str, str], ...] = (),
) -> Reply:
    """`body` of content type `kind`, with the headers that every reply carries and `more`.

    `host` is the name by which the server was called, as `Access.host` gives it: scripts may open
    sockets there.
    """
    headers = (
        ("Content-Type", kind),
        ("Content-Length", str(len(body))),
        ("Content-Security-Policy", policy(host)),
        *_FIXED,
        *more,
    )
    return Reply(status, headers, body)


def line(status: int, text: str, *, more: tuple[tuple[str, str], ...] = ()) -> Reply:
    """One line of text."""
    return reply(status, f"{text}\n".encode(), "text/plain; charset=utf-8", more=more)


def refusal(refused: Refused) -> Reply:
    """What a client reads that may not connect."""
    # RFC 9110, 15.5.2: who answers 401 says what would be accepted.
    challenge = (("WWW-Authenticate", "Bearer"),) if refused.status == 401 else ()
    return line(refused.status, f"{refused.reason}: {refused.hint}", more=challenge)


def policy(host: str | None) -> str:
    """The Content-Security-Policy of a page that is served as `host`."""
    # To older browsers 'self' means no sockets. A source has no way to write an IPv6 address; who
    # calls the server by one needs a browser in which 'self' is enough.
    named = host is not None and not host.startswith("[")
    sockets = f" ws://{host} wss://{host}" if named else ""
    rules = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": f"'self'{sockets}",
        "img-src": "'self'",
        "media-src": "'self'",
        "worker-src": "'self'",
        "font-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return "; ".join(f"{name} {sources}" for name, sources in rules.items())
