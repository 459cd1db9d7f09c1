"""Routes: each request gets a file of web/, metrics, a voice sample, a refusal or a websocket.

Clients that may not connect are refused here, before a websocket is opened. The headers of all
responses tell a browser to run only code from this server. All files of web/ are read once at the
start, and served from a dictionary in memory whose keys are the exact paths of their URLs. No path
of a file is made from what a client sends, so no request can reach another folder. Escapes in URLs
are not decoded, since the names in web/ need none. This module knows neither sockets nor the
messages of a websocket: the server adds the Date, and leaves out the body for HEAD.
"""

from __future__ import annotations

import hashlib
import io
import logging
import re
import wave
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import unquote

import anyio
import numpy as np
from starlette.responses import Response

from voiceloop.audio.frames import silence, to_pcm16
from voiceloop.engines import GUESS, Engines
from voiceloop.errors import ConfigError
from voiceloop.languages import language
from voiceloop.server.access.auth import Access, HeaderList, RefusalReason
from voiceloop.server.access.limits import Kind
from voiceloop.server.ops.metrics import Metrics
from voiceloop.tts.clauses import cut

INDEX = "/index.html"
"""Path of the page."""
ALIASES: Mapping[str, str] = {"/": INDEX, "/favicon.ico": "/favicon.svg"}
"""Other names of files. Browsers request /favicon.ico if no page names an icon."""
TYPES: Mapping[str, str] = {
    ".crt": "application/x-x509-ca-cert",
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
"""Content types by suffix. The system's own table is not used, since it differs among machines."""
UNSERVED = (".d.ts", "package.json")
"""Endings of the names of files that only developers of the page need."""

_ETAG = re.compile(r'(?:W/)?("[^"]*")')
_FIXED = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=(), display-capture=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Browsers ask again each time and get 304: so a page and its scripts are of one version.
    "Cache-Control": "no-cache",
}
NONE: Mapping[str, str] = {}


def reply(
    status: int,
    body: bytes,
    kind: str,
    *,
    host: str | None = None,
    more: Mapping[str, str] = NONE,
) -> Response:
    """Return a response with `body` of content type `kind`, the fixed headers, and `more` headers.

    `host` is the name by which the server was called, as `Access.host` returns it. Scripts may
    open sockets to it.
    """
    headers = {"Content-Security-Policy": policy(host), **_FIXED, **more}
    return Response(body, status, headers, kind)


def line(status: int, text: str, *, more: Mapping[str, str] = NONE) -> Response:
    """Return a response of one line of text."""
    return reply(status, f"{text}\n".encode(), "text/plain; charset=utf-8", more=more)


def refusal(refused: RefusalReason) -> Response:
    """Return the response for a client that may not connect."""
    # RFC 9110, 15.5.2: a 401 must say which credentials are accepted.
    challenge = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else NONE
    return line(refused.status, f"{refused}: {refused.hint}", more=challenge)


def policy(host: str | None) -> str:
    """Return the Content-Security-Policy of a page that is served as `host`."""
    # In older browsers 'self' does not include websockets, so these are named. A source cannot be
    # an IPv6 address: pages that are opened at one need a newer browser.
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
    """A file of the page, as it is served."""

    body: bytes
    kind: str
    """Content type."""
    etag: str


class Site:
    """All files of the page, by the path under which they are requested."""

    def __init__(self, assets: Mapping[str, Asset]) -> None:
        named = {alias: assets[name] for alias, name in ALIASES.items() if name in assets}
        self.assets = {**assets, **named}

    def add(self, file: Path) -> None:
        """Serve one more file, under its own name."""
        self.assets[f"/{file.name}"] = _asset(file)

    def answer(self, method: str, target: str, headers: HeaderList, host: str) -> Response:
        """Answer a request for `target`, whose query is ignored.

        `host` is what `Access.host` returned. The status is 200, 304 if the client has the file
        already, 404, or 405 for a method other than GET and HEAD.
        """
        if method not in ("GET", "HEAD"):
            return line(405, "only GET and HEAD are understood", more={"Allow": "GET, HEAD"})
        asset = self.assets.get(target.partition("?")[0])
        if asset is None:
            return line(404, "there is nothing under that name")
        known = _names(headers, asset.etag)
        status, body = (304, b"") if known else (200, asset.body)
        return reply(status, body, asset.kind, host=host, more={"ETag": asset.etag})


def load(folder: Path) -> Site:
    """Read all files under `folder`. Raises ConfigError if index.html is missing, if a file is of
    an unknown type, or if one cannot be read."""
    try:
        assets = {
            f"/{path.relative_to(folder).as_posix()}": _asset(path)
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.endswith(UNSERVED)
        }
    except OSError as error:
        raise ConfigError(
            f"cannot read {error.filename}: {error.strerror}", "install voiceloop again"
        ) from error
    if INDEX not in assets:
        raise ConfigError(f"no web page in {folder}", "install voiceloop again")
    return Site(assets)


def _asset(path: Path) -> Asset:
    if path.suffix not in TYPES:
        raise ConfigError(f"{path} is of no known type", f"known are {', '.join(TYPES)}")
    body = path.read_bytes()
    return Asset(body, TYPES[path.suffix], f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def _names(headers: HeaderList, etag: str) -> bool:
    """Return whether the client has this version already (If-None-Match, RFC 9110, 13.1.2)."""
    given = [value for name, value in headers if name.lower() == "if-none-match"]
    return any(value.strip() == "*" or etag in _ETAG.findall(value) for value in given)


logger = logging.getLogger(__name__)

SOCKET = "/v1/realtime"
VOICES = "/v1/voices/"
METRICS = "/metrics"
KEPT = 32
"""Maximum number of voice samples that are kept: those that were requested last."""
WAITING = 4
"""Maximum number of requests for voice samples at a time; more are refused."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """An HTTP request of a client."""

    method: str
    target: str
    """Path and query, as they were sent."""
    headers: HeaderList
    peer: str
    """Address that the connection comes from; empty if it is unknown."""
    websocket: bool = False
    """Whether it asks for a websocket."""

    @property
    def browser(self) -> bool:
        """Whether a browser sent it. Browsers add the header Origin, which names the page's
        server."""
        return any(name.lower() == "origin" for name, _ in self.headers)

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


class Routes:
    """The routes of one server."""

    def __init__(
        self, access: Access, site: Site, metrics: Metrics, full: Callable[[], bool]
    ) -> None:
        """`full` returns whether all places for clients are taken."""
        self.unready = "the models are being loaded"
        """Why no client is accepted now; empty if clients are accepted."""
        self.samples: Samples | None = None
        """The voice samples; None until the models are loaded."""
        self._access = access
        self._site = site
        self._metrics = metrics
        self._full = full

    async def answer(self, request: HttpRequest) -> Response | None:
        """Return the response to a request; None if a websocket is to be opened."""
        if request.method not in ("GET", "HEAD"):  # a shell would take CONNECT for a tunnel
            return self._site.answer(request.method, request.target, request.headers, "")
        # Load balancers and clusters probe these two paths, with any name in the header Host.
        if request.path == "/healthz":
            return line(200, "alive")
        if request.path == "/readyz":
            return line(503, self.unready) if self.unready else line(200, "ready")
        called = self._access.host(request.headers, request.peer)
        if isinstance(called, RefusalReason):
            return self._refused(called)
        match request.path:
            case path if path in (SOCKET, METRICS) or path.startswith(VOICES):
                return await self._protected(request, path)
            case _:
                return self._site.answer(request.method, request.target, request.headers, called)

    async def _protected(self, request: HttpRequest, path: str) -> Response | None:
        """Return the response for a path that `Access.judge` protects; None for a websocket."""
        verdict = self._access.judge(request.target, request.headers, request.peer)
        if isinstance(verdict, RefusalReason):
            return self._refused(verdict)
        if path == METRICS:
            return reply(200, *self._metrics.render())
        if self.unready or self.samples is None:
            return line(503, self.unready)
        if path != SOCKET:
            return await self.samples.answer(unquote(path.removeprefix(VOICES)))
        if self._full():
            self._metrics.refused(Kind.SESSIONS)
            why = "all places are taken; one is free when somebody leaves"
            _log_refusal(Kind.SESSIONS, why)
            return line(503, why)
        # Checked last: a page whose websocket was refused sends a plain request to get the reason.
        if not request.websocket:
            return line(426, "open a websocket here", more={"Upgrade": "websocket"})
        return None

    def _refused(self, refused: RefusalReason) -> Response:
        """Return the response for a refused request, and count and log the refusal."""
        self._metrics.refused(refused)
        _log_refusal(refused, refused.hint)
        return refusal(refused)


def _log_refusal(reason: StrEnum, why: str) -> None:
    logger.info("a request was refused", extra={"reason": reason.value, "why": why})


class Samples:
    """Voice samples: a short sentence in each voice, synthesised in idle time, one at a time."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._made = OrderedDict[str, bytes]()
        self._lock = anyio.Lock()
        self._requests = 0

    async def answer(self, voice: str) -> Response:
        """Return a wav file of the voice. The status is 200, 404 for an unknown voice, or 503 if
        too many requests wait."""
        try:
            self._engines.tts.check_voice(voice)
        except ConfigError as error:
            return line(404, f"{error.message}; {error.hint}")
        if self._requests >= WAITING:
            return line(503, "others are trying voices; try again in a moment")
        self._requests += 1
        try:
            async with self._lock:
                if voice not in self._made:
                    self._made[voice] = await self._speak(voice)
                    while len(self._made) > KEPT:
                        self._made.popitem(last=False)
                self._made.move_to_end(voice)
                return reply(200, self._made[voice], "audio/wav")
        finally:
            self._requests -= 1

    async def _speak(self, voice: str) -> bytes:
        """Synthesise the sample of a voice. Return it as a wav file."""
        tts, runner = self._engines.tts, self._engines.tts_runner
        spoken = language(tts.language(voice))
        pieces = [silence(0)]
        for clause in cut(spoken.sample, spoken):
            steps = tts.synthesize(clause, voice)
            chunks = runner.stream(steps, priority=GUESS)
            pieces += [chunk.pcm async for chunk in chunks]
        file = io.BytesIO()
        with wave.open(file, "wb") as writer:
            writer.setnchannels(1)
            writer.setsampwidth(2)
            writer.setframerate(tts.rate)
            writer.writeframes(to_pcm16(np.concatenate(pieces)).astype("<i2").tobytes())
        return file.getvalue()
