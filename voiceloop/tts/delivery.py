"""From the samples of a clause to its chunks, for engines that make them piece by piece.

Here is what engines share: which text is spoken and where a long one is parted, whose noise is
drawn, and how pieces become chunks, trimmed, with their words and the pause behind them. This
module does not know how samples are made.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from voiceloop.audio import silence
from voiceloop.engines import Steps
from voiceloop.tts.alignment import PacedWords, TimedWords
from voiceloop.tts.edges import PAUSE_MS, Trimmer, pause
from voiceloop.types import Clause, Pcm, SpeechChunk, SpokenWord

# Phonemizers hand the text to another program: it cannot hold half a surrogate pair.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def sayable(clause: Clause) -> str:
    """What a model is given to say; empty where nothing is to be said."""
    text = _UNSAFE.sub(" ", clause.spoken).strip()
    if not any(map(str.isalnum, text)):
        return ""
    if not clause.last and text[-1] not in PAUSE_MS:
        text += ","  # or it would sound like the end of the sentence
    return text


def nothing(clause: Clause, rate: int) -> SpeechChunk:
    """The only chunk of a clause that nothing is said of; its words are over at once."""
    words = tuple(SpokenWord(0, 0, span) for span in range(len(clause.spans)))
    return SpeechChunk(clause.turn, clause, silence(0), rate, 0, words, last=True)


def middle(text: str) -> int:
    """Where `text` is best parted: behind a mark, or else a word, near its middle."""
    middle = len(text) // 2
    gaps = [i for i, char in enumerate(text) if char.isspace() and 0 < i]
    marks = [i for i in gaps if text[i - 1] in PAUSE_MS and abs(i - middle) < middle / 2]
    return min(marks or gaps or [middle], key=lambda i: abs(i - middle))


class Noise:
    """What is drawn for a clause, from torch's global generators: the same for the same text.

    Libraries draw from these. Between the steps of one clause others may be spoken, and whoever
    else draws from them sees nothing of it.
    """

    def __init__(self, text: str, device: torch.device) -> None:
        self._seed = zlib.crc32(text.encode())
        self._cuda = [device] if device.type == "cuda" else []
        self._left: list[torch.Tensor] = []

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Go on where the last step ended."""
        with torch.random.fork_rng(self._cuda):
            if self._left:
                torch.set_rng_state(self._left[0])
                for device, state in zip(self._cuda, self._left[1:], strict=True):
                    torch.cuda.set_rng_state(state, device)
            else:
                torch.manual_seed(self._seed)
            yield
            self._left = [torch.get_rng_state(), *map(torch.cuda.get_rng_state, self._cuda)]


def deliver(
    clause: Clause,
    pieces: Iterator[tuple[Pcm, bool]],
    words: TimedWords | PacedWords,
    rate: int,
    speed: float,
) -> Steps[SpeechChunk]:
    """The chunks of a clause; each of its `pieces`, of which the last is marked, is a step."""
    trimmer, sounded = Trimmer(rate), 0
    for made, last in pieces:
        pcm = trimmer.feed(made)
        if last:
            pcm = np.concatenate((pcm, trimmer.finish()))
        first, sounded = sounded, sounded + len(pcm)
        told = words.told(trimmer.cut, sounded, last=last)
        if last and sounded:
            pcm = np.concatenate((pcm, pause(clause, rate, speed)))
        chunk = SpeechChunk(clause.turn, clause, pcm, rate, first, told, last)
        yield chunk if last or len(pcm) else None
