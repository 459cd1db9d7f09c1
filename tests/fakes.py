"""What tests of single stages and of the session script by hand.

Engines, clock and user are those of `tests.support`; here is only a user who says fixed things
at fixed times, whatever comes of them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

import anyio
import numpy as np

from tests.support.user import FRAME, Lexicon, Piece
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.types import AudioFrame, Pcm

SHORTEST_S = 0.27
"""A shorter sound is not recognised as a word."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """Words said from `start` (seconds of the stream), each `word_s` long."""

    start: float
    text: str
    word_s: float = 0.3

    @property
    def end(self) -> float:
        """When the last word is over."""
        return self.start + self.word_s * len(self.text.split())


class Script(Lexicon):
    """What the user says in a stream of `total_s` seconds."""

    def __init__(self, utterances: Sequence[Utterance], total_s: float) -> None:
        super().__init__()
        self.utterances = utterances
        self.total_s = total_s

    def pcm(self) -> Pcm:
        """The user's whole stream."""
        pcm = np.zeros(round(self.total_s * SPEECH_RATE), np.float32)
        for utterance in self.utterances:
            at = utterance.start
            for word in utterance.text.split():
                text = word if utterance.word_s >= SHORTEST_S else ""
                sound = self.sound(Piece(text, utterance.word_s))[
                    : len(pcm) - round(at * SPEECH_RATE)
                ]
                pcm[round(at * SPEECH_RATE) : round(at * SPEECH_RATE) + len(sound)] = sound
                at += utterance.word_s
        return pcm


@dataclass
class ScriptMicrophone:
    """The script's stream; while it is held its clock stops."""

    script: Script
    finished: bool = False
    held: list[str] = field(default_factory=list[str])
    stopped: bool = False

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        pcm, at = self.script.pcm(), anyio.current_time()
        for start in range(0, len(pcm), FRAME):
            at += FRAME / SPEECH_RATE
            while self.stopped:
                await anyio.sleep(0.02)
                at = max(at, anyio.current_time() + FRAME / SPEECH_RATE)
            await anyio.sleep_until(at)
            self.finished = start + FRAME >= len(pcm)
            yield AudioFrame(pcm[start : start + FRAME], SPEECH_RATE, start)

    def hold(self) -> None:
        self.held.append("hold")
        self.stopped = True

    def release(self) -> None:
        self.held.append("release")
        self.stopped = False
