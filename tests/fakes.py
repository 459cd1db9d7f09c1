"""What tests of single stages and of the session script by hand.

The scripted engines are those of `voiceloop.replay`; here is only a user who says fixed things at
fixed times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from voiceloop.audio import SPEECH_RATE as RATE
from voiceloop.replay.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voiceloop.replay.user import FRAME, Lexicon, Piece
from voiceloop.types import Pcm

__all__ = [
    "FRAME",
    "RATE",
    "English",
    "Script",
    "ScriptedAsr",
    "ScriptedLlm",
    "ScriptedTts",
    "ScriptedVad",
    "Utterance",
]


class English:
    """What a recogniser says of languages that knows one."""

    languages: tuple[str, ...] = ("en",)

    def detect_language(self, pcm: Pcm) -> tuple[str, float]:
        del pcm
        return "en", 1.0


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
        pcm = np.zeros(round(self.total_s * RATE), np.float32)
        for utterance in self.utterances:
            at = utterance.start
            for word in utterance.text.split():
                text = word if utterance.word_s >= SHORTEST_S else ""
                sound = self.sound(Piece(text, utterance.word_s))[: len(pcm) - round(at * RATE)]
                pcm[round(at * RATE) : round(at * RATE) + len(sound)] = sound
                at += utterance.word_s
        return pcm
