"""What a request gets: a file, a figure, a voice to hear, a refusal, or a socket.

Whoever may not come in is refused here, before a socket is opened. This module knows neither the
library that reads requests nor what goes through a socket.
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

from voiceloop.audio.frames import silence, to_pcm16
from voiceloop.engines import GUESS, Engines
from voiceloop.errors import ConfigError
from voiceloop.languages import language
from voiceloop.server.auth import Access, AccessRefused, HeaderList
from voiceloop.server.http import HttpResponse, Site, line, refusal, reply
from voiceloop.server.limits import Kind
from voiceloop.server.metrics import Metrics
from voiceloop.tts.clauses import cut

logger = logging.getLogger(__name__)

SOCKET = "/v1/realtime"
VOICES = "/v1/voices/"
METRICS = "/metrics"
KEPT = 32
"""Samples of voices that are kept, those that were asked for last."""
WAITING = 4
"""Requests for them at once; more are sent away."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What a client asks for."""

    method: str
    target: str
    """Path and query, as they came."""
    headers: HeaderList
    peer: str = ""
    """The address that it comes from."""

    @property
    def browser(self) -> bool:
        """A browser's, which names the page that asks."""
        return any(name.lower() == "origin" for name, _ in self.headers)

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


class Routes:
    """The answers of one server."""

    def __init__(
        self, access: Access, site: Site, metrics: Metrics, full: Callable[[], bool]
    ) -> None:
        """`full` says whether all places for clients are taken."""
        self.unready = "the models are being loaded"
        """Why nobody is let in; empty where somebody may be."""
        self.samples: Samples | None = None
        """There once the models are."""
        self._access = access
        self._site = site
        self._metrics = metrics
        self._full = full

    async def answer(self, request: HttpRequest) -> HttpResponse | None:
        """The answer to a request; none where a socket is to be opened for it."""
        called = self._access.host(request.headers)
        if isinstance(called, AccessRefused):
            return self._refused(called)
        match request.path:
            case "/healthz":
                return line(200, "alive")
            case "/readyz":
                return line(503, self.unready) if self.unready else line(200, "ready")
            case path if path in (SOCKET, METRICS) or path.startswith(VOICES):
                return await self._judged(request, path)
            case _:
                return self._site.answer(request.method, request.target, request.headers, called)

    async def _judged(self, request: HttpRequest, path: str) -> HttpResponse | None:
        """The answer where not everybody gets one."""
        judged = self._access.judge(request.target, request.headers)
        if isinstance(judged, AccessRefused):
            return self._refused(judged)
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
        # Only now: whoever was let into no socket, and may not be told why, comes to ask.
        if "upgrade" not in {name.lower() for name, _ in request.headers}:
            return line(426, "open a websocket here", more=(("Upgrade", "websocket"),))
        return None

    def _refused(self, refused: AccessRefused) -> HttpResponse:
        self._metrics.refused(refused.reason)
        _log_refusal(refused.reason, refused.hint)
        return refusal(refused)


def _log_refusal(reason: StrEnum, why: str) -> None:
    logger.info("a request was refused", extra={"reason": reason.value, "why": why})


class Samples:
    """How the voices sound: a short sentence in each, spoken in idle time, one after the other."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._made = OrderedDict[str, bytes]()
        self._one = anyio.Lock()
        self._asked = 0

    async def answer(self, voice: str) -> HttpResponse:
        """A wav file of the voice; statuses are 200, 404 where there is none of that name, and 503
        where too many have asked."""
        try:
            self._engines.tts.check_voice(voice)
        except ConfigError as error:
            return line(404, f"{error.message}; {error.hint}")
        if self._asked >= WAITING:
            return line(503, "others are trying voices; try again in a moment")
        self._asked += 1
        try:
            async with self._one:
                if voice not in self._made:
                    self._made[voice] = await self._speak(voice)
                    while len(self._made) > KEPT:
                        self._made.popitem(last=False)
                self._made.move_to_end(voice)
                return reply(200, self._made[voice], "audio/wav")
        finally:
            self._asked -= 1

    async def _speak(self, voice: str) -> bytes:
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
