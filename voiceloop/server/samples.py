"""How the voices sound: a short sentence in each, for whoever chooses among them."""

from __future__ import annotations

import io
import wave
from collections import OrderedDict

import anyio
import numpy as np

from voiceloop.audio import silence, to_pcm16
from voiceloop.engines import Engines
from voiceloop.errors import ConfigError
from voiceloop.languages import language
from voiceloop.runner import LATER
from voiceloop.server.replies import Reply, line, reply
from voiceloop.tts.clauses import cut

KEPT = 32
"""Samples that are kept, those that were asked for last."""
WAITING = 4
"""Requests at once; more are sent away."""


class Samples:
    """Speaks in idle time, one sentence after the other."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._made = OrderedDict[str, bytes]()
        self._one = anyio.Lock()
        self._asked = 0

    async def answer(self, voice: str) -> Reply:
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
            chunks = runner.stream(steps, priority=lambda: LATER)
            pieces += [chunk.pcm async for chunk in chunks]
        file = io.BytesIO()
        with wave.open(file, "wb") as wav:
            wav.setnchannels(1)
            wav.setsampwidth(2)
            wav.setframerate(tts.rate)
            wav.writeframes(to_pcm16(np.concatenate(pieces)).astype("<i2").tobytes())
        return file.getvalue()
