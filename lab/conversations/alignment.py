"""Finds when the words of a recording are spoken, by forced alignment with pocketsphinx.

Whisper's cross-attention gives word times too. For recordings of people these are 0.1 to 0.3 s
late, so a silence inserted at such a time falls in the middle of a word. Forced alignment to the
known words is accurate to some hundredths of a second. It works for English only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from voiceloop.audio.frames import SPEECH_RATE, to_pcm16
from voiceloop.errors import MissingExtra
from voiceloop.types import Pcm

FRAME = SPEECH_RATE // 100
"""Samples in the aligner's unit of time."""
FILLERS = ("<", "[", "+")
"""First characters of the aligner's names for silences and noises."""

Stretch = tuple[int, int]
"""The samples of a word: the first, and the one after the last."""
Align = Callable[[Pcm, Sequence[str]], Sequence[Stretch | None]]
"""A function that finds each of the words in the audio; None for a word that is not found."""


def aligner() -> Align:
    """Return an aligner for English. Raises MissingExtra without pocketsphinx."""
    try:
        import pocketsphinx
    except ImportError as error:
        raise MissingExtra("pocketsphinx", "dev") from error
    # pocketsphinx gives an alignment only if its search for the best path is off.
    decoder: Any = pocketsphinx.Decoder(samprate=SPEECH_RATE, loglevel="FATAL", bestpath=False)

    def align(pcm: Pcm, words: Sequence[str]) -> Sequence[Stretch | None]:
        keys = [re.sub(r"[^a-z']", "", word.lower().replace("\u2019", "'")) for word in words]
        known = [bool(key) and decoder.lookup_word(key) is not None for key in keys]
        spoken = [key for key, is_known in zip(keys, known, strict=True) if is_known]
        if not spoken:
            return [None] * len(words)
        decoder.set_align_text(" ".join(spoken))
        _pass(decoder, pcm)
        if decoder.hyp() is None:  # the audio has nothing like these words
            return [None] * len(words)
        decoder.set_alignment()
        _pass(decoder, pcm)
        found = [
            (word.start * FRAME, (word.start + word.duration) * FRAME)
            for word in decoder.get_alignment()
            if not word.name.startswith(FILLERS)
        ]
        if len(found) != len(spoken):
            return [None] * len(words)
        places = iter(found)
        return [next(places) if is_known else None for is_known in known]

    return align


def _pass(decoder: Any, pcm: Pcm) -> None:
    decoder.start_utt()
    decoder.process_raw(to_pcm16(pcm).tobytes(), full_utt=True)
    decoder.end_utt()
