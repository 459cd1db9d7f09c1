"""Plain answers over HTTP: the headers that every one of them carries, and the files of web/.

The server answers a request with a page of its own or with one line of text; whatever it is, a
browser is told to run nothing but what came from here. Files are read once at the start and served
from memory: a request names a key of a dictionary or nothing. No path is ever put together from
what a client sent, so there is none to escape by; names in web/ are plain enough to need no
decoding, and nothing is decoded. This module does not decide who may ask, and it knows no sockets
and no clock: whoever sends a reply adds the Date.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from voiceloop.errors import ConfigError
from voiceloop.server.auth import AccessRefused, HeaderList

INDEX = "/index.html"
"""The page."""
ALIASES: Mapping[str, str] = {"/": INDEX, "/favicon.ico": "/favicon.svg"}
"""Files by other names. Browsers look for their icon under the second where no page names one."""
TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".wav": "audio/wav",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
"""Content types by suffix. The machine's own table is not asked: it differs from one to another."""
UNSERVED = (".d.ts", "package.json")
"""Ends of names of files that are there for whoever works on the page."""

_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]*", re.IGNORECASE | re.ASCII)
_ETAG = re.compile(r'(?:W/)?("[^"]*")')
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
class HttpResponse:
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
) -> HttpResponse:
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
    return HttpResponse(status, headers, body)


def line(status: int, text: str, *, more: tuple[tuple[str, str], ...] = ()) -> HttpResponse:
    """One line of text."""
    return reply(status, f"{text}\n".encode(), "text/plain; charset=utf-8", more=more)


def refusal(refused: AccessRefused) -> HttpResponse:
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


@dataclass(frozen=True, slots=True)
class Asset:
    """One file."""

    body: bytes
    kind: str
    """Content type."""
    etag: str


class Site:
    """All files by the path under which they are asked for."""

    def __init__(self, assets: Mapping[str, Asset]) -> None:
        named = {alias: assets[name] for alias, name in ALIASES.items() if name in assets}
        self.assets = {**assets, **named}

    def answer(self, method: str, target: str, headers: HeaderList, host: str) -> HttpResponse:
        """Answer a request for `target`, whose query is ignored; `host` is what `Access.host` gave.

        Statuses are 200, 304, 404, and 405 for a method that is neither GET nor HEAD.
        """
        if method not in ("GET", "HEAD"):
            answered = line(405, "only GET and HEAD are understood", more=(("Allow", "GET, HEAD"),))
        elif asset := self.assets.get(target.partition("?")[0]):
            answered = reply(200, asset.body, asset.kind, host=host, more=(("ETag", asset.etag),))
            if _names(headers, asset.etag):
                answered = HttpResponse(304, answered.headers)
        else:
            answered = line(404, "there is nothing under that name")
        # To HEAD the headers of GET, the length of what is left out among them.
        return HttpResponse(answered.status, answered.headers) if method == "HEAD" else answered


def load(folder: Path) -> Site:
    """Read every file under `folder`.

    ConfigError where there is no index.html, and for a file of an unknown type, one whose name
    would need decoding in a URL, one that cannot be read, and one that is a link.
    """
    assets: dict[str, Asset] = {}
    try:
        for path in sorted(folder.rglob("*")):
            if path.is_symlink():
                raise ConfigError(f"{path} is a link", "put the file itself there")
            if path.is_file() and not path.name.endswith(UNSERVED):
                name = _path(path, folder)
                assets[name] = _asset(path)
    except OSError as error:
        raise ConfigError(
            f"cannot read {error.filename}: {error.strerror}", "install voiceloop again"
        ) from error
    if INDEX not in assets:
        raise ConfigError(f"no web page in {folder}", "install voiceloop again")
    return Site(assets)


def _path(path: Path, folder: Path) -> str:
    parts = path.relative_to(folder).parts
    if not all(_NAME.fullmatch(part) for part in parts):
        raise ConfigError(
            f"{path} cannot be served under that name", "use letters, digits, and . _ - within"
        )
    return "/" + "/".join(parts)


def _asset(path: Path) -> Asset:
    if path.suffix not in TYPES:
        raise ConfigError(
            f"{path} is of no known type",
            f"known are {', '.join(TYPES)}; others do not belong here",
        )
    body = path.read_bytes()
    return Asset(body, TYPES[path.suffix], f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def _names(headers: HeaderList, etag: str) -> bool:
    """Whether the client has what `etag` is of (If-None-Match, RFC 9110, 13.1.2)."""
    given = [value for name, value in headers if name.lower() == "if-none-match"]
    return any(value.strip() == "*" or etag in _ETAG.findall(value) for value in given)
