"""When the words of a recording are spoken: forced alignment by pocketsphinx.

Whisper's cross-attention tells word times too, but on people it lags by 0.1 to 0.3 s, and a silence
put where it begins a word stands in the middle of it. An acoustic model that is held to the words
is right to some hundredths. It knows English alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from voiceloop.audio.frames import SPEECH_RATE, to_pcm16
from voiceloop.errors import MissingExtra
from voiceloop.types import Pcm

FRAME = SPEECH_RATE // 100
"""Samples of the aligner's unit of time."""
FILLERS = ("<", "[", "+")
"""How the names of silences and noises begin."""

Stretch = tuple[int, int]
"""First sample of a word, and the one after its last."""
Align = Callable[[Pcm, Sequence[str]], Sequence[Stretch | None]]
"""Where in the audio each of these words is spoken; None where that is not known."""


def aligner() -> Align:
    """An aligner of English.

    Raises MissingExtra.
    """
    try:
        import pocketsphinx
    except ImportError as error:
        raise MissingExtra("pocketsphinx", "dev") from error
    # Of the likeliest path alone there is an alignment.
    decoder: Any = pocketsphinx.Decoder(samprate=SPEECH_RATE, loglevel="FATAL", bestpath=False)

    def align(pcm: Pcm, words: Sequence[str]) -> Sequence[Stretch | None]:
        keys = [re.sub(r"[^a-z']", "", word.lower().replace("\u2019", "'")) for word in words]
        known = [bool(key) and decoder.lookup_word(key) is not None for key in keys]
        spoken = [key for key, told in zip(keys, known, strict=True) if told]
        if not spoken:
            return [None] * len(words)
        decoder.set_align_text(" ".join(spoken))
        _pass(decoder, pcm)
        if decoder.hyp() is None:  # nothing like these words is said
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
        return [next(places) if told else None for told in known]

    return align


def _pass(decoder: Any, pcm: Pcm) -> None:
    decoder.start_utt()
    decoder.process_raw(to_pcm16(pcm).tobytes(), full_utt=True)
    decoder.end_utt()
