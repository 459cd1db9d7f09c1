"""Routes: each request gets a file, metrics, a voice sample, a refusal or a websocket.

Clients that may not connect are refused here, before a websocket is opened. This module knows
neither the library that reads requests nor the messages of a websocket.
"""

from __future__ import annotations

import io
import logging
import wave
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import unquote

import anyio
import numpy as np
from starlette.responses import Response

from voiceloop.audio.frames import silence, to_pcm16
from voiceloop.engines import GUESS, Engines
from voiceloop.errors import ConfigError
from voiceloop.languages import language
from voiceloop.server.auth import Access, AccessRefused, HeaderList
from voiceloop.server.http import Site, line, refusal, reply
from voiceloop.server.limits import Kind
from voiceloop.server.metrics import Metrics
from voiceloop.tts.clauses import cut

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
        if isinstance(called, AccessRefused):
            return self._refused(called)
        match request.path:
            case path if path in (SOCKET, METRICS) or path.startswith(VOICES):
                return await self._protected(request, path)
            case _:
                return self._site.answer(request.method, request.target, request.headers, called)

    async def _protected(self, request: HttpRequest, path: str) -> Response | None:
        """Return the response for a path that `Access.judge` protects; None for a websocket."""
        verdict = self._access.judge(request.target, request.headers, request.peer)
        if isinstance(verdict, AccessRefused):
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

    def _refused(self, refused: AccessRefused) -> Response:
        """Return the response for a refused request, and count and log the refusal."""
        self._metrics.refused(refused.reason)
        _log_refusal(refused.reason, refused.hint)
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
        with wave.open(file, "wb") as wav:
            wav.setnchannels(1)
            wav.setsampwidth(2)
            wav.setframerate(tts.rate)
            wav.writeframes(to_pcm16(np.concatenate(pieces)).astype("<i2").tobytes())
        return file.getvalue()
